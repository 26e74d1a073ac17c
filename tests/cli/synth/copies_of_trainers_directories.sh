# A copy of the newest checkpoint of a trainer, whose average is the new one: the same folders, all other files byte
# for byte, and the trainer's own files say what the average is.
exec 2>&1
same() { # NAME in out.safetensors, its name in DIR
    "$phema" inspect --tensor "$1" --raw out.safetensors >a
    "$phema" inspect --tensor "$2" --raw "$3" >b
    cmp a b && echo "  $2"
}
differ() { (cd "$2" && diff -rq "$1" . | sed "s|$1|OLD|" | LC_ALL=C sort); }
trainers=$fixtures/trainers
synth() { "$phema" synth -q --no-sync --sigma-rel 0.08 "$@"; echo "status $?"; }

echo "- flux_action: the folder and state.json have the new width"
old=$trainers/flux_action/step-200
synth "$trainers/flux_action" out.safetensors
synth "$trainers/flux_action" --into "$old" copy/
synth "$trainers/flux_action" --into "$old" --key ema_0p10 copy/
differ "$old" copy
grep -A3 '"emas"' copy/state.json
for name in dit.guidance dit.img_in.weight dit.single.0.linear1.weight; do
    same "$name" "ema_0p08.tensors.$name" copy
done
"$phema" verify copy
"$phema" inspect copy | grep snapshots:
echo "- the copy is no snapshot of its series"
mkdir run && cp -r "$trainers"/flux_action/step-1?0 run && cp -r copy run/step-200
"$phema" weights -q --json --sigma-rel 0.08 run | grep -c '"file": "step-200'
"$phema" weights --sigma-rel 0.08 run | grep 'step-200'
echo "- --force replaces a copy, and nothing else with folders"
synth -f "$trainers/flux_action" --into "$old" --key ema_0p05 copy/
ls -a copy | LC_ALL=C sort | tr '\n' ' '; echo
synth -f "$trainers/flux_action" --ranks 1 copy/
rm copy/posthoc_ema.json
synth -f "$trainers/flux_action" --into "$old" --key ema_0p05 copy/
echo "- what the trainer's files cannot say"
"$phema" synth -q --profile sma:2 "$trainers/flux_action" --into "$old" --key ema_0p05 new/
"$phema" synth -q --sigma-rel 0.1 "$trainers/flux_action" --into "$old" --key ema_0p05 new/
"$phema" synth -q --sigma-rel 0.1 "$trainers/flux_action" --into "${old%200}150" --key ema_0p05 new/
synth "$trainers/flux_action" --into "$old" --key ema_0p10 new.safetensors
cp -r "$old" left && chmod -R u+w left && touch left/ema_0p10/notes
synth "$trainers/flux_action" --into left --key ema_0p10 new/
synth "$trainers/flux_action" --into left --key ema_0p05 new/
rm -r new
synth "$trainers/flux_action" --into "$old" --key ema_0p99 new/
echo "- raw parameters"
synth "$trainers/flux_action" --into "$old" --key raw raw/
differ "$old" raw
same dit.img_in.weight model.model.dit.img_in.weight raw

echo "- Cosmos"
old=$trainers/cosmos_dcp/checkpoints/iter_000000240
synth -f "$trainers/cosmos_dcp/checkpoints" out.safetensors
synth "$trainers/cosmos_dcp/checkpoints" --into "$old" cosmos/
differ "$old" cosmos
same blocks.0.norm.bias model.net_ema.blocks.0.norm.bias cosmos
"$phema" verify cosmos

echo "- torchtitan, several averages"
old=$trainers/titan_multi_2ranks/checkpoint/step-240
synth -f "$trainers/titan_multi_2ranks/checkpoint" out.safetensors
synth "$trainers/titan_multi_2ranks/checkpoint" --into "$old" titan/
synth "$trainers/titan_multi_2ranks/checkpoint" --into "$old" --key half_life_0p1 titan/
differ "$old" titan
same layers.0.gain ema.state.layers.0.gain.ema_params.half_life_0p1 titan
"$phema" inspect --tensor layers.0.gain --raw out.safetensors | cmp - <("$phema" inspect --raw \
    --tensor ema.state.layers.0.gain.ema_params.half_life_0p05 titan) >/dev/null || echo "  others stay"
