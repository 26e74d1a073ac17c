# Series of many kinds with true labels: none is doubted.
n=0
for options in '' '--dtype f16' '--dtype bf16' '--dtype f64' '--input-sigma 0.1' '--input-sigma 0.03,0.05,0.1,0.2' \
    '--input-profile raw' '--input-profile ema:half-life=500' '--input-profile window:30' '--update-every 10' \
    '--params 100' '--steps 100000'; do
    # shellcheck disable=SC2086 # several options
    "$phema" gen -q --no-sync --params 5000 $options --count $((4 + n % 3 * 7)) --seed $((n++)) "run$n" >/dev/null
    "$phema" weights --json -q --sigma-rel 0.1 "run$n" >weights.json
    grep -q '"verdict": "fits"' weights.json || echo "doubted: gen $options, series $n"
done
echo "$n series"
