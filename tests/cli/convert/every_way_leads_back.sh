# each line must say the same average
"$phema" convert --sigma-rel 0.1 --at 1000 --json >a.json
number() { sed -n "s/.*\"$1\": \([0-9.e-]*\).*/\1/p" a.json; }
"$phema" convert --sigma-rel "$(number sigma_rel)" --gamma "$(number gamma)" \
    --half-life "$(number half_life)" --decay "$(number decay)" --at 1000
