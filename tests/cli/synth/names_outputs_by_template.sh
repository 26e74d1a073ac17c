"$phema" gen -q --count 2 --params 100 run >/dev/null
"$phema" synth -q --sigma-rel 0.05,0.1 --at 2048,4096 run sweep
"$phema" synth -q --sigma-rel 0.1 run 'x/{sigma}@{time}.safetensors'
"$phema" synth -q --sigma-rel 0.1,0.2 run 'y-{time}.safetensors'
echo "status $?"
"$phema" synth -q --sigma-rel 0.1,0.2 run y.safetensors
echo "status $?"
"$phema" synth -q --sigma-rel 0.1 run 'y-{step}.safetensors'
echo "status $?"
"$phema" synth -q --sigma-rel 0.1 run 'z{{{sigma}}.safetensors'
echo "status $?"
"$phema" synth -q --sigma-rel 0.1 run y.pt
echo "status $?"
ls . sweep x
