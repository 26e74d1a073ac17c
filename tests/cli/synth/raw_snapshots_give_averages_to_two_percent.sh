# Raw snapshots are combined as in checkpoint averaging. A target that equals a stored snapshot returns that snapshot.
"$phema" gen --count 20 --steps 4000 --truth-dtype f64 --input-profile raw --truth 0.03,0.15,0.25 \
    --truth-profile ema:half-life=100 --truth-profile window:400 --truth-profile window:1000 \
    --truth-profile cosine:1000 --truth-profile minus-sqrt:1000 --truth-profile raw run >/dev/null
for truth in 0.030 0.150 0.250 ema100 window400 window1000 cosine1000 minus-sqrt1000; do
    near 2e-2 run/truth/truth-0004000-$truth.safetensors run/manifest.json --metric walk
done
near 6e-8 run/truth/truth-0004000-raw.safetensors run/manifest.json --metric walk
