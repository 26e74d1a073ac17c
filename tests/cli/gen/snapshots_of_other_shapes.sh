printf '1 0.5\n10 0.9\n' >betas.txt
"$phema" gen --count 2 --steps 64 --params 8 --json --input-profile ema:half-life=20 \
    --input-profile edm-ema:half-life=30,ramp=0.1 --input-profile window:10.5 \
    --input-profile cosine:16 --input-profile minus-sqrt:16 --input-profile raw \
    --input-profile table:betas.txt --input-profile diffusers --input-profile power:0.05 \
    --input-profile power:gamma=3 --truth-profile linear:20 run
find run | sort
for file in run/*-0000064-*.safetensors run/truth/*; do
    "$phema" inspect "$file" | sed -n 's/^  posthoc_ema\.//p' | paste -sd ';'
done
cat run/manifest.json run/table-betas.txt
