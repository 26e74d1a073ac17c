# Anonymous memory holds the sums of a tile; it depends neither on the model nor on the number of snapshots. Past
# the page cache it holds the buffers that are read ahead as well. The two threads write in step, so that both work.
# Sanitizers use memory of their own, so with them only the run itself is tested.
faults="env LD_PRELOAD=$(dirname "$phema")/tests/libfaults.so FAULT_CALLS=pwrite FAULT_PATH=.partial FAULT_STEP=2"
[ -z "${sanitize-}" ] || faults=
direct=direct # where the directory's filesystem can
measure() { # io, limit in MiB
    for count in 2 20; do
        $faults "$phema" synth -q -f -j2 --no-sync --json --io "$1" --sigma-rel 0.1 run$count out$count.safetensors >json
        bytes=$(grep -o '"peak_anonymous_bytes": [0-9]*' json | grep -o '[0-9]*$')
        awk -v bytes="$bytes" -v most="$2" -v sanitize="${sanitize-}" \
            'BEGIN { print (sanitize != "" || bytes < most * 1048576) ? "under " most " MiB" : bytes " bytes" }'
        eval "bytes$count=$bytes"
    done
    awk -v a="$bytes2" -v b="$bytes20" -v sanitize="${sanitize-}" \
        'BEGIN { print (sanitize != "" || b < a + 2 * 1048576) ? "the same for 4 and 40 snapshots" : a " " b }'
}
for count in 2 20; do
    "$phema" gen -q --count $count --steps 40 --params 4M --dtype f16 --no-sync run$count >/dev/null
done
"$phema" synth -q --io direct --sigma-rel 0.1 run2 probe.safetensors >/dev/null 2>probe || direct="read"
measure read 16
measure $direct 32
