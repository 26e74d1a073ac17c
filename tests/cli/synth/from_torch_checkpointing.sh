# DTensors of two processes average as the whole tensors do that the library read back, also where
# only the first directory has metadata.pkl, and where only it explains the safetensors; the truths
# have no integers, and the scalar as a list of one
work=$PWD
cp -r "$fixtures/torch_checkpointing_safetensors" one
for step in 20 40; do # more steps of the only one, without metadata.pkl
    cp -r one/step_60 "one/step_$step"
    rm "one/step_$step/metadata.pkl" "one/step_$step"/step_*.pt
done
cd "$fixtures" || exit
for run in torch_checkpointing torch_checkpointing_first_only "$work/one"; do
    set -- "$run"/step_*
    for step; do
        echo "${step##*/}"
    done | awk -v n=$# '{ printf "%s %.17g\n", $1, 1 / n }' >"$work/weights.txt"
    out=$work/out.safetensors
    "$phema" synth --quiet --force --dtype f32 --weights "$work/weights.txt" "$run" "$out" >"$work/path"
    "$phema" diff --tolerance 1e-7 "$out" "$run/truth_mean.safetensors" | grep -v out.safetensors
    "$phema" inspect --tensor blk.0.gain --raw "$out" | od -An -t f4
    "$phema" inspect --tensor blk.0.gain --raw "$run/truth_mean.safetensors" | od -An -t f8
    "$phema" synth --quiet --force --convert --key model "${!#}" "$out" >"$work/path"
    "$phema" diff "$out" "$run/newest.safetensors"
done
