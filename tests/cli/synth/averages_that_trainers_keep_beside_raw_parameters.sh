# Checkpoints that the trainers' libraries wrote, with raw parameters and averages of them. The truths are averages of
# all live states in float64. LIMIT is 1.3 times the relative L2 error that the weights make which are best for
# parameters that walk, as computed beside the truths, and what float32 adds. Averages alone, at two to four times of
# some 60 parameters, hardly say how the parameters walked: there, but for one, the walk is given.
while read -r name top width limit options; do
    # shellcheck disable=SC2086
    "$phema" synth -qf --sigma-rel "$width" $options "$fixtures/trainers/$name/$top" out.safetensors \
        >/dev/null || continue
    error=$("$phema" diff --json out.safetensors "$fixtures/trainers/$name/truth_$width.safetensors" |
        sed -n 's/^ "rel_l2": \(.*\),$/\1/p')
    awk -v what="$name $width $options" -v error="$error" -v limit="$limit" 'BEGIN {
        print what, (error > 0 && error <= limit ? "near" : "is " error " away, not within " limit) }'
done <<'END'
titan checkpoint 0.050 3.5e-3
titan checkpoint 0.100 6.6e-3
titan checkpoint 0.050 8.9e-3 --use averages --metric walk
titan_every4 checkpoint 0.060 4.5e-3 --input-profile titan:fraction=0.08,start=21,every=4,bias=2
titan_every4 checkpoint 0.120 4.9e-3 --input-profile titan:fraction=0.08,start=21,every=4,bias=2
titan_floor checkpoint 0.050 5.2e-4 --input-profile titan:start=40,counting=floor
titan_floor checkpoint 0.100 2.1e-2 --input-profile titan:start=40,counting=floor
titan_multi_2ranks checkpoint 0.040 1.4e-3
titan_multi_2ranks checkpoint 0.080 1.3e-4
titan_multi_2ranks checkpoint 0.080 1.7e-4 --use averages --metric walk
cosmos_pt checkpoints 0.080 2.5e-3
cosmos_pt checkpoints 0.150 3.4e-3
cosmos_pt checkpoints 0.150 7.8e-3 --use averages --metric walk
cosmos_dcp checkpoints 0.050 3.2e-2 --input-profile cosmos:shift=500
cosmos_dcp checkpoints 0.120 1.9e-2 --input-profile cosmos:shift=500
flux_action . 0.070 4.7e-4
flux_action . 0.150 9.6e-4
flux_action . 0.150 1.2e-3 --use averages --metric walk
lightning_ema checkpoints 0.100 1.8e-3 --input-profile lightning:decay=0.95
lightning_ema checkpoints 0.200 3.9e-3 --input-profile lightning:decay=0.95
lightning_ema checkpoints 0.100 4.2e-3 --input-profile lightning:decay=0.95 --use averages
END
# Megatron keeps no average: the mean of raw parameters
"$phema" synth -qf --profile sma:2 "$fixtures/trainers/megatron" out.safetensors >/dev/null
"$phema" diff --tolerance 3e-3 out.safetensors "$fixtures/trainers/megatron/truth_mean.safetensors"
