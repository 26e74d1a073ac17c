# The summary and the provenance report the rules. Invalid rules are refused, and nothing is written then.
"$phema" gen -q --count 3 --steps 300 --params 30k --tensors 9 --no-sync run >/dev/null
"$phema" synth --no-sync --sigma-rel 0.1 --rule 'blocks\.0=copy' --rule 'blocks\.(?=.)[12]\.weight=0.05' \
    --rule 'bias$=0.2' run out.safetensors 2>&1 |
    grep -o '.*follow.*)\|.*tensors (.*averaged)'
"$phema" synth --no-sync -q --json --force --sigma-rel 0.1 --rule 'bias=0.2' run out.safetensors |
    sed -n '/"rules"/p' | grep -o '"rules.*' | sed 's/: [0-9][-0-9.e]*/: #/g'

echo "--- provenance"
"$phema" synth --no-sync -q --force --sigma-rel 0.1 --rule 'blocks\.0=copy' --rule 'bias=0.2' run out.safetensors
provenance=$("$phema" inspect --json out.safetensors | grep -o '"posthoc_ema.provenance": ".*"' | sed 's/\\"/"/g; s/\\\\/\\/g')
command=$(echo "$provenance" | grep -o '"command":"[^"]*"' | sed 's/^"command":"posthoc-ema //; s/"$//; s/\\\\/\\/g')
echo "$command"
echo "$provenance" | grep -o '"rules":\[.*\]' | sed 's/"weights.*//; s/:[0-9][-0-9.e]*/:#/g'
weights() { grep -o '"weights": *\[[^]]*\]' | sed -n "$1p" | tr -d ' '; }
alone=$("$phema" weights -q --json --sigma-rel 0.2 run | weights 1)
[ "$(echo "$provenance" | weights 1)" = "$alone" ] && echo "the weights are those of the width alone"
"$phema" weights -q --json --sigma-rel 0.1 --rule 'blocks\.0=copy' --rule 'bias=0.2' run >weights.json
[ "$(weights 2 <weights.json)" = "$alone" ] && echo "in weights --json as well"
eval "\"\$phema\" $command again.safetensors -q --no-sync" && cmp out.safetensors again.safetensors &&
    echo "the command makes the same bytes again"

echo "--- refused"
try() { "$phema" synth -q "$@" run refused.safetensors; echo "$?" >&2; }
try --sigma-rel 0.1 --rule attn
try --sigma-rel 0.1 --rule '=0.1'
try --sigma-rel 0.1 --rule 'bias='
try --sigma-rel 0.1 --rule 'bias=wide'
try --sigma-rel 0.1 --rule 'bias=0.1 '
try --sigma-rel 0.1 --rule 'bias=0.3'
try --sigma-rel 0.1 --rule 'bias=-0.1'
try --sigma-rel 0.1 --rule '(bias=0.1'
try --sigma-rel 0.1 --rule 'attn_qkv=0.1'
try --sigma-rel 0.1 --exclude bias --rule 'bias=0.1'
try --sigma-rel 0.1 --rule 'b=copy' --rule 'bias=0.1'
try --sigma-rel 0.1 --rule 'bias=copy' --rule '.=copy' --rule 'a=copy'
try --rule 'bias=0.1'
try --sigma-rel 0.1 --max-error 1e-6 --rule 'bias=0.28' 2>&1 | sed 's/error [0-9.e-]* is/error # is/' >&2
try --weights weights.json
try --weights weights.json --rule 'bias=0.1'
"$phema" synth --convert --rule 'bias=0.1' out.safetensors refused.safetensors
echo "$?" >&2
ls
