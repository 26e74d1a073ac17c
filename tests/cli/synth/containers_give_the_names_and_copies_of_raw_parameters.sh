# An output has the names of the raw parameters, so that the model loads it. Tensors without an average, and integers,
# are those of the newest raw parameters.
same() { # NAME in the output, its name in CHECKPOINT
    "$phema" inspect --tensor "$1" --raw out.safetensors >a
    "$phema" inspect --tensor "$2" --raw "$3" >b
    cmp a b && echo "  $1 is $2 of ${3##*/}"
}
for run in titan/checkpoint titan_multi_2ranks/checkpoint cosmos_pt/checkpoints cosmos_dcp/checkpoints flux_action \
    lightning_ema/checkpoints megatron; do
    echo "$run"
    "$phema" synth -qf --sigma-rel 0.08 "$fixtures/trainers/$run" out.safetensors >/dev/null
    "$phema" inspect out.safetensors | sed -n '/  averages are no snapshots\|no snapshot for synth/,$p' | sed 1,2d |
        awk '{ print "  " $1, $NF }' | LC_ALL=C sort
    case $run in
    titan/checkpoint)
        for name in layers.0.moe.tokens_per_expert_E layers.0.frozen.weight; do
            same "$name" "$name" "$fixtures/trainers/$run/step-240"
        done ;;
    cosmos_pt/checkpoints)
        same accum_image_sample_counter model.net.accum_image_sample_counter \
            "$fixtures/trainers/$run/iter_000000240.pt"
        same pos_embedder.seq model.net.pos_embedder.seq "$fixtures/trainers/$run/iter_000000240.pt" ;;
    flux_action)
        same dit.audio.weight model.model.dit.audio.weight "$fixtures/trainers/$run/step-200"
        same dit.steps model.model.dit.steps "$fixtures/trainers/$run/step-200" ;;
    lightning_ema/checkpoints)
        same net.bn.num_batches_tracked current_model_state.net.bn.num_batches_tracked \
            "$fixtures/trainers/$run/epoch=0-step=120.ckpt" ;;
    esac
done
