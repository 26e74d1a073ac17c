# Anonymous memory holds the sums of a tile; it depends neither on the model nor on the number of snapshots.
# Sanitizers use memory of their own, so with them only the run itself is tested.
for count in 2 20; do
    "$phema" gen -q --count $count --steps 40 --params 4M --dtype f16 --no-sync run$count >/dev/null
    "$phema" synth -q --no-sync --json --sigma-rel 0.1 run$count out$count.safetensors >json
    bytes=$(grep -o '"peak_anonymous_bytes": [0-9]*' json | grep -o '[0-9]*$')
    awk -v bytes="$bytes" -v sanitize="${sanitize-}" \
        'BEGIN { print (sanitize != "" || bytes < 64 * 1048576) ? "under 64 MiB" : bytes " bytes" }'
    eval "bytes$count=$bytes"
done
awk -v a="$bytes2" -v b="$bytes20" -v sanitize="${sanitize-}" \
    'BEGIN { print (sanitize != "" || b < a + 2 * 1048576) ? "the same for 4 and 40 snapshots" : a " " b }'
