# Every file holds averages of two widths. torch computed expected/: 1/4 of the first time and 3/4 of the second.
# Optimizer and raw parameters are excluded.
try() { # snapshots, key of the average, expected
    mapfile -t names < <(cd "$1" && ls -d -- *.*)
    set -- "$@" "${names[@]}"
    printf '%s:%s 0.25\n%s:%s 0.75\n' "$4" "$2" "$1/$5" "$2" >weights.txt
    "$phema" synth --no-sync --force --weights weights.txt "$1" out.safetensors 2>notes
    sed -n '/averages/p' notes
    "$phema" diff out.safetensors "$3" && "$phema" inspect out.safetensors | grep 'B  [a-z]'
}
try "$fixtures/edm2_state" ema.emas.0 "$fixtures/edm2_state/expected/0.050.safetensors"
try "$fixtures/edm2_state" ema.emas.1 "$fixtures/edm2_state/expected/0.100.safetensors"
try "$fixtures/lightning/stds_emas" callbacks.PowerEMA.emas.1 \
    "$fixtures/lightning/expected/stds_emas.safetensors"

# one of the averages alone: its width is known, and its name is that of the file
"$phema" weights --sigma-rel 0.1 --key ema.emas.1 "$fixtures/edm2_state" 2>&1

# synth accepts the output of weights
"$phema" weights -q --json --sigma-rel 0.07 "$fixtures/edm2_state" >weights.json
grep '"file"' weights.json
"$phema" synth -q --no-sync --weights weights.json "$fixtures/edm2_state" again.safetensors
"$phema" synth -q --no-sync --sigma-rel 0.07 "$fixtures/edm2_state" once.safetensors
"$phema" diff again.safetensors once.safetensors
