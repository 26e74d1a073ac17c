# The later average minus the earlier one: the weights sum to 0, so a tensor that never changes becomes 0.
# The same weights from a file make the same bytes.
"$phema" gen -q --count 4 run >/dev/null
"$phema" synth -q --profile 'power:0.05 - power:0.1' run difference.safetensors
"$phema" weights -q --json --profile 'power:0.05 - power:0.1' run >weights.json
grep -o '"profile": "difference", "spec": "[^"]*"' weights.json
"$phema" synth -q --weights weights.json run given.safetensors
"$phema" diff -q difference.safetensors given.safetensors && echo equal
# both averages are snapshots of the series: their weights are 1 and -1
"$phema" weights -qv --profile 'power:0.05 - power:0.1' run | grep 4096 | awk '{ print $1, $NF }'
