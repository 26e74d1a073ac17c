# A file of weights is read once, from front to back: a pipe will do.
"$phema" gen -q --count 2 --steps 64 --params 200 --tensors 2 --no-sync run >/dev/null
"$phema" weights -q --json --sigma-rel 0.1 run >weights.json
"$phema" synth -q --no-sync --weights weights.json run file.safetensors
"$phema" synth -q --no-sync --weights <(cat weights.json) run pipe.safetensors
"$phema" diff file.safetensors pipe.safetensors
"$phema" synth --no-sync --weights <(printf '{"targets": []}') run none.safetensors 2>&1 | sed 's|/dev/fd/[0-9]*|PIPE|'
[ -e none.safetensors ] || echo "nothing is written"
