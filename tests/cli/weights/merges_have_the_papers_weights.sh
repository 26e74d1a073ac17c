# PMA (arXiv:2505.12082): equal, ascending, and M_i = a W_i + (1 - a) M_(i-1).
# WSM (arXiv:2507.17634): w = 0.75, 0.5, 0.25 and so on of each decay, c_j = w_j - w_(j+1).
# Snapshots outside a merge have the weight 0.
for k in 1 2 3 4 5; do echo "{\"time\": ${k}00, \"profile\": \"raw\"}"; done | paste -sd, |
    sed 's/.*/{"snapshots": [&]}/' >raw.json
"$phema" weights -q --profile sma:4 --profile wma:4 --profile ema-merge:0.2,n=3 \
    --profile ema-merge:0.5 --profile wsm-linear:4 --profile wsm-cosine:4 \
    --profile wsm-minus-sqrt:4 raw.json
echo "between two snapshots, and at one"
"$phema" weights -q --profile sma:2 --profile raw --profile 'raw - sma:2' --at 400 raw.json
"$phema" weights -q --profile sma:2 --at 450 raw.json
for spec in sma:6 'wma:3'; do
    "$phema" weights -q --profile "$spec" --at 200 raw.json
    echo $?
done
