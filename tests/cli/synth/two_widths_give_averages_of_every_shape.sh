# Power functions of two widths at 20 times, in float32. Averages of shapes that no snapshot has differ from the
# exact ones by 1e-5 to 2e-3. Limits are twice the errors of weights that NumPy solves step by step. Averages hold
# little of the parameters of one step: "un-averaging" gives 2 %.
"$phema" gen --count 20 --steps 4000 --truth-dtype f64 --truth 0.03,0.075,0.15,0.25 \
    --truth-profile ema:half-life=100 --truth-profile ema:half-life=400 --truth-profile window:400 \
    --truth-profile window:1000 --truth-profile window:1024 --truth-profile cosine:1000 \
    --truth-profile minus-sqrt:1000 --truth-profile raw run >/dev/null
is_near() { near "$2" "run/truth/truth-0004000-$1.safetensors" run --metric walk; }
is_near 0.030 4.1e-4
is_near 0.075 2.4e-5
is_near 0.150 4.6e-5
is_near 0.250 9.1e-4
is_near ema100 2.9e-4
is_near ema400 4.6e-4
is_near window400 1.6e-4
is_near window1000 1.3e-4
is_near window1024 6.1e-4
is_near cosine1000 2.7e-4
is_near minus-sqrt1000 3.6e-3
is_near raw 4.4e-2
