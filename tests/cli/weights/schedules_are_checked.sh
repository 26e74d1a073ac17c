exec 2>&1
"$phema" gen -q --no-sync run >/dev/null
printf 'step,lr\n0,1\n4096,0.1\n' >log.csv
printf '{"step": 0, "lr": 1}\n{"step": 0, "lr": 2}\n' >log.jsonl
for schedule in cosine:warmup=5%,end=0 wsd log.csv log.jsonl no.csv cosine:warm=1 linear:warmup=8k constant:end=1; do
    "$phema" weights -q --schedule "$schedule" --sigma-rel 0.15 run >/dev/null
    echo "$schedule $?"
done
"$phema" weights --json -q --sigma-rel 0.15 run >weights.json
"$phema" synth --weights weights.json --schedule cosine run out.safetensors
echo "$?"
"$phema" synth -q --no-sync --schedule log.csv --sigma-rel 0.15 run out.safetensors && "$phema" verify -q out.safetensors
