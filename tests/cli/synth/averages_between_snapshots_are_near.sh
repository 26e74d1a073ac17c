# 3900 lies half-way between two snapshots, and the later one is used. The limits are derived as in
# two_widths_give_averages_of_every_shape.
"$phema" gen --count 20 --steps 4000 --truth-dtype f64 --truth 0.075,0.15 --truth-at 3900 \
    --truth-profile window:1000 --truth-profile ema:half-life=400 run >/dev/null
is_near() { near "$2" "run/truth/truth-0003900-$1.safetensors" run --metric walk; }
is_near 0.075 1.7e-3
is_near 0.150 7.1e-4
is_near window1000 9.3e-4
is_near ema400 1.2e-3
