# --profile newest is a snapshot as it is, whatever its rounding: of the newest the raw one, or the narrowest. A rule
# gives other tensors their own width, and a time without a snapshot has none.
exec 2>&1
"$phema" gen -q --count 4 --raw --dtype bf16 run >/dev/null
synth() { "$phema" synth -q "$@"; }
synth --profile newest run narrowest.safetensors
"$phema" diff narrowest.safetensors run/snapshot-0004096-0.050.safetensors
synth --profile newest --input-profile raw run raw.safetensors
"$phema" diff raw.safetensors run/snapshot-0004096-raw.safetensors
synth --profile newest --at 2048 run earlier.safetensors
"$phema" diff earlier.safetensors run/snapshot-0002048-0.050.safetensors
for made in narrowest raw earlier; do "$phema" verify $made.safetensors; done
synth --skip-existing --profile newest run narrowest.safetensors
echo "status $?"
synth --sigma-rel 0.05 run solved.safetensors
"$phema" diff solved.safetensors narrowest.safetensors | tail -n 1 | sed 's/^[^a]*//'
echo "- its name, beside other targets"
synth --sigma-rel 0.07 --profile newest --at 2048,4096 run several/
ls several
echo "- with a rule"
synth --profile newest --rule 'blocks.0=0.1' run rule.safetensors
"$phema" diff rule.safetensors run/snapshot-0004096-0.050.safetensors | awk 'NR > 1 { print $3 }'
"$phema" verify rule.safetensors
echo "- labels that are wrong: updates every 10 steps"
synth --profile newest --update-every 10 --checks off run updates.safetensors
"$phema" diff updates.safetensors run/snapshot-0004096-0.050.safetensors
"$phema" inspect --json updates.safetensors | grep -o '"posthoc_ema.profile": .*'
echo "- no such snapshot"
synth --profile newest --at 1500 run no.safetensors
echo "status $?"
synth --profile 'newest - raw' run no.safetensors
echo "status $?"
