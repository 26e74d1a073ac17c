# Each fault is one sentence. Names have their old lengths, so that .metadata stays readable.
try() { # NAME OPTIONS...
    echo "== $1"
    shift
    "$phema" weights -q --sigma-rel 0.1 "$@" run 2>&1 >/dev/null | tail -n 1
}
fresh() {
    rm -rf run
    cp -r "$fixtures/trainers/$1" run
    chmod -R u+w run
}
rename() { # FROM TO FILES...
    local from=$1 to=$2
    shift 2
    sed -i "s/$from/$to/g" "$@"
}
fresh titan/checkpoint
rename 'layers.0.gain.ema_params' 'layers.0.gaun.ema_params' run/step-180/.metadata
try 'an average of nothing'
fresh titan/checkpoint
rename 'layers.0.gain.ema_params' 'layers.0.gaun.ema_params' run/step-120/.metadata
try 'an average of nothing in the first'
fresh titan/checkpoint
rename 'ema_params' 'ema_tarams' run/step-240/.metadata
try 'without averages, the last one is a snapshot of raw parameters'
fresh titan/checkpoint
rename 'ema.state.layers.0.gain.ema_params' 'ema.state.layers.0.guin.em_varams1' run/step-240/.metadata
try 'one average is missing'
fresh titan_multi_2ranks/checkpoint
rename 'half_life_0p1' 'half_life_xp1' run/step-160/.metadata
try 'a key without a number'
fresh titan_multi_2ranks/checkpoint
rename 'half_life_0p1' 'half_life_0p0' run/step-160/.metadata
try 'a key that no average has'
fresh titan_multi_2ranks/checkpoint
rename 'half_life_0p05' 'half_life_0p10' run/step-160/.metadata
try 'two keys of one profile'
fresh titan_multi_2ranks/checkpoint
try 'a width that the key says' --input-profile titan:fraction=0.2
fresh cosmos_dcp/checkpoints
rename 'net.logit_scale' 'not.logit_scale' run/iter_000000240/model/.metadata
try 'a raw parameter is missing'
fresh cosmos_dcp/checkpoints
rename 'net\.' 'not.' run/iter_000000240/model/.metadata
try 'all raw parameters are missing'
fresh cosmos_dcp/checkpoints
mv run/iter_000000240/model run/iter_000000240/modul
try 'the model is elsewhere'
fresh cosmos_pt/checkpoints
mv run/iter_000000240.pt run/iter_000000239.pt
try 'another iteration inside'
fresh flux_action
rm run/step-200/COMPLETE
"$phema" weights --sigma-rel 0.1 run 2>&1 >/dev/null | grep -A1 COMPLETE
fresh flux_action
rm run/*/COMPLETE
try 'nothing is complete'
fresh flux_action
rm -r run/step-100/model
try 'averages alone'
fresh flux_action
for change in 's/"sigma_rel": 0.1,/"sigma_rel": 0.2,/' 's/"n_tensors": 3/"n_tensors": 4/' 's/"format": 1/"format": 2/' \
    's/"step": 150/"step": 151/' 's/"last_step": 149/"last_step": 150/' 's/"last_step": 149/"last_step": 98/' \
    's/"last_step": 149/"last_step": 1.5/' 's/"sigma_rel": 0.1,//' 's/"ema_0p10"/"ema_0p11"/' 's/{/[/'; do
    cp "$fixtures/trainers/flux_action/step-150/state.json" run/step-150/state.json
    sed -i "$change" run/step-150/state.json
    try "state.json: $change"
done
fresh cosmos_dcp/checkpoints
for time in 120 240; do
    cp -r run/iter_000000$time/model/. run/iter_000000$time
    rename 'net_ema.blocks.0.norm.bias' 'model.net.pos_embedder.seq' run/iter_000000$time/.metadata
done
try 'names that are equal without their prefixes'
cp "$fixtures/trainers/cosmos_dcp/checkpoints/iter_000000120/model/.metadata" run/iter_000000120/.metadata
try 'names that are equal without their prefixes in the last'
fresh titan/checkpoint
rm run/step-*/.metadata
try 'no metadata'
fresh megatron
sed -i 's/torch_dist/zarr/' run/*/metadata.json
try 'a backend that is not read'
fresh megatron
sed -i 's/torch_dist/other_dist/' run/iter_0000030/metadata.json
try 'unknown to Megatron'
fresh lightning_ema/checkpoints
try 'raw averages' --input-profile raw
fresh titan/checkpoint
mv run/step-240 run/step-239
try 'a step that its counter denies'
printf '{"snapshots": [{"file": "step-239", "time": 241}, {"file": "step-180", "time": 180}]}' >run/times.json
"$phema" weights -q --sigma-rel 0.1 run/times.json 2>&1 >/dev/null | tail -n 1
fresh titan/checkpoint
sed -i 's/train_state.step/train_state.stop/' run/step-240/.metadata
mv run/step-240 run/step-239
try 'without a counter the name counts'
fresh lightning_ema/checkpoints
try 'updates at every second step' --input-profile lightning:decay=0.95,every=2
try 'updates from step 11 on' --input-profile lightning:decay=0.95,start=10
try 'updates at every step' --input-profile lightning:decay=0.95
fresh mirai
mv run/step_00000200.pt run/step_00000201.pt
try 'a step that mirai denies'
fresh mirai_large
try 'tensors in a folder beside the file'
"$phema" synth -q --convert run/step_00000100.pt out.safetensors 2>&1
