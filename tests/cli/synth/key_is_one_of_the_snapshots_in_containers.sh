# --key NAME takes one of the sets of tensors in each checkpoint, under the names of the model.
exec 2>&1
trainers=$fixtures/trainers
for case in titan/checkpoint:ema titan/checkpoint:raw titan_multi_2ranks/checkpoint:half_life_0p05 \
    titan_multi_2ranks/checkpoint:decay_0p99 flux_action:ema_0p05 cosmos_dcp/checkpoints:ema; do
    echo "- $case"
    "$phema" weights -q --json --key "${case#*:}" --sigma-rel 0.09 "$trainers/${case%:*}" |
        sed -n 's/.*"file": "\([^"]*\)".*/\1/p'
done
echo "- a conversion has this set alone"
for case in titan_multi_2ranks/checkpoint/step-240:half_life_0p1 flux_action/step-200:ema_0p10 flux_action/step-200:raw; do
    "$phema" synth -qf --convert --key "${case#*:}" "$trainers/${case%:*}" "out.safetensors" && "$phema" inspect \
        out.safetensors | grep 'tensors, '
done
"$phema" inspect --tensor dit.steps --raw out.safetensors | wc -c
echo "- names of no set"
"$phema" weights -q --key half_life_0p07 --sigma-rel 0.1 "$trainers/titan_multi_2ranks/checkpoint"
"$phema" synth -q --convert --key ema_0p99 "$trainers/flux_action/step-200" new.safetensors
ls
