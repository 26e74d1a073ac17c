# The line and the member of JSON are those of the provenance, not of the series as it is now.
"$phema" gen -q --no-sync --count 8 --params 5000 run >/dev/null
LC_ALL=C sed -i 's/posthoc_ema\./posthoc_xxx./g' run/*.safetensors
recorded() { # OUT
    "$phema" verify --json "$1" | sed -n '/recorded_checks": null/p; /recorded_checks": {/,/}/p'
}
"$phema" synth -q --no-sync --sigma-rel 0.15 run fits.safetensors
"$phema" verify fits.safetensors
recorded fits.safetensors
"$phema" synth -q --no-sync --checks off --sigma-rel 0.15 run unknown.safetensors
"$phema" verify unknown.safetensors
cp run/snapshot-0002048-0.050.safetensors run/snapshot-0002560-0.050.safetensors
"$phema" synth -q --no-sync --sigma-rel 0.15 run wrong.safetensors
"$phema" verify -q wrong.safetensors
recorded wrong.safetensors

# A stranger's provenance moves no cursor; an older one has no verdict.
cp run/snapshot-0004096-0.050.safetensors template.safetensors
"$phema" synth -q --no-sync --into template.safetensors --sigma-rel 0.15 run copy.safetensors
sed -i -E 's/("reason":")[^"]*/\1\\u001b[31m/; s/"verdict":"wrong"/"verdict":"doubtful"/' copy.safetensors.json
"$phema" verify -q copy.safetensors
sed -i 's/"checks":/"others":/' copy.safetensors.json
"$phema" verify -q copy.safetensors
recorded copy.safetensors
