"$phema" gen -q --count 2 --params 100 run >/dev/null
echo mine >out.safetensors
"$phema" synth -q --sigma-rel 0.1 run out.safetensors
echo "status $?"
cat out.safetensors
"$phema" synth -q --force --sigma-rel 0.1 run out.safetensors
"$phema" synth -q --force --sigma-rel 0.1 run run/snapshot-0004096-0.050.safetensors
echo "status $?"
ls
