"$phema" gen --count 2 --steps 100 run >/dev/null
"$phema" synth -q --sigma-rel 0.08 run out.safetensors
"$phema" inspect out.safetensors | grep 'by synth\|no snapshot'
"$phema" inspect --json out.safetensors | sed -n '/"rules"/,$p'
"$phema" inspect --json out.safetensors | grep '"rule":'
echo $?
