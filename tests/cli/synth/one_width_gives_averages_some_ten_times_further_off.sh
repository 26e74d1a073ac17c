# The limits are derived as in two_widths_give_averages_of_every_shape.
"$phema" gen --count 20 --steps 4000 --truth-dtype f64 --input-sigma 0.05 --truth 0.03,0.15,0.25 \
    --truth-profile ema:half-life=100 --truth-profile ema:half-life=400 --truth-profile window:400 \
    --truth-profile window:1000 --truth-profile cosine:1000 --truth-profile minus-sqrt:1000 run \
    >/dev/null
is_near() { near "$2" "run/truth/truth-0004000-$1.safetensors" run --metric walk; }
is_near 0.030 4.3e-3
is_near 0.150 1.6e-3
is_near 0.250 2.9e-3
is_near ema100 3.1e-3
is_near ema400 1.5e-3
is_near window400 4e-3
is_near window1000 2.5e-3
is_near cosine1000 3.1e-3
is_near minus-sqrt1000 1e-2
