# Each line of the output must describe the same average.
"$phema" convert --sigma-rel 0.1 --at 1000 --json >a.json
number() { sed -n "s/.*\"$1\": \([0-9.e-]*\).*/\1/p" a.json; }
"$phema" convert --sigma-rel "$(number sigma_rel)" --gamma "$(number gamma)" \
    --half-life "$(number half_life)" --half-life-rel "$(number half_life_rel)" --beta "$(number beta)" --decay "$(number decay)" \
    --ema-half-life "$(number ema_half_life)" --at 1000
