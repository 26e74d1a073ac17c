# Each series has two shapes, and its manifest replaces the directory. Limits are twice the errors of weights that
# NumPy solves step by step. A target that is a snapshot, or a sum of some, is exact.
series() {
    name=$1
    shift
    "$phema" gen --count 20 --steps 4000 --truth-dtype f64 --truth 0.075,0.25 \
        --truth-profile ema:half-life=400 --truth-profile window:1000 --truth-profile raw "$@" "$name" \
        >/dev/null
    echo "$name"
}
is_near() { near "$2" "$name/truth/truth-0004000-$1.safetensors" "$name/manifest.json" --metric walk; }
series emas --input-profile ema:half-life=150 --input-profile ema:half-life=400
is_near 0.075 3.9e-5
is_near 0.250 7.1e-5
is_near ema400 6e-8
is_near window1000 1.1e-4
is_near raw 4.4e-2
series ramped --input-profile edm-ema:half-life=300,ramp=0.05 --input-profile edm-ema:half-life=800,ramp=0.1
is_near 0.075 1.7e-5
is_near 0.250 7.4e-4
is_near ema400 4.5e-4
is_near window1000 8.8e-5
series power-and-ema --input-sigma 0.05 --input-profile ema:half-life=300
is_near 0.075 1.9e-5
is_near 0.250 6.1e-4
is_near ema400 2.4e-5
is_near window1000 1.4e-4
series ema-and-raw --input-profile ema:half-life=300 --raw
is_near 0.075 2.2e-4
is_near 0.250 9.1e-4
is_near window1000 1.1e-3
is_near raw 6e-8
series windows --input-profile window:200 --input-sigma 0.1
is_near 0.075 3.7e-5
is_near 0.250 1.8e-4
is_near window1000 6e-8
seq 4000 | sed 's/$/ 0.995/' >betas.txt
series table --input-profile table:betas.txt --input-sigma 0.05
is_near 0.075 1.3e-4
is_near window1000 4e-4
