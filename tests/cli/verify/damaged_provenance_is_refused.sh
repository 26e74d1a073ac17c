# A provenance is unchecked input. Missing or impossible values end in a sentence, and nothing in the
# provenance is executed.
"$phema" gen -q --count 2 run >/dev/null
cp run/snapshot-0004096-0.050.safetensors template.safetensors
"$phema" synth -q --sigma-rel 0.1 --into template.safetensors run out.safetensors >/dev/null
"$phema" verify out.safetensors
cp out.safetensors.json good.json
try() { # sed expression
    sed -E "$1" good.json >out.safetensors.json
    "$phema" verify out.safetensors 2>&1 | cut -c 1-200
    echo "status ${PIPESTATUS[0]}"
}
# shellcheck disable=SC2016 # the last line, for sed
try '$d'
try 's/"version":1,/"version":2,/'
try 's/"snapshots":\[.*\],"profile_error"/"snapshots":[],"profile_error"/'
try 's/"weight":[^,]*/"weight":null/'
try 's/"file":"[^"]*"/"file":"a\\u0000b"/'
try 's/"file":"snapshot-0002048/"file":"..\/snapshot-0002048/'
try 's/"command":"[^"]*"/"command":"rm -rf \/"/'
try 's/"command":"[^"]*"/"command":"posthoc-ema synth --sigma-rel 0.1"/'
try 's/"command":"[^"]*"/"command":"posthoc-ema synth --frobnicate run"/'
try 's/"command":"[^"]*"/"command":"posthoc-ema synth --help"/'
try 's/"command":"[^"]*"/"command":"posthoc-ema synth --convert run"/'
try 's/"command":"[^"]*"/"command":"posthoc-ema synth --sigma-rel 0.2 run"/'
try 's/"xxh3":"./"xxh3":"-/'
try 's/"bytes":[0-9]*/"bytes":-1/'
echo "- made by a version that said less"
try 's/,"bytes":[0-9]*,"xxh3":"[^"]*"//g'
echo "- none at all"
rm out.safetensors.json
"$phema" verify out.safetensors
echo "status $?"
"$phema" verify missing.safetensors
echo "status $?"
ls
