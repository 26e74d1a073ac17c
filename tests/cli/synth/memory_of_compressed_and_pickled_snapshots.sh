# Anonymous memory: pickled snapshots cost next to nothing, like plain ones. Each compressed snapshot costs a
# decoder, that is the window of its frames and 1 MiB. Sanitizers use memory of their own, so with them only the
# runs themselves are tested.
peak() { # SNAPSHOTS OUT, options
    "$phema" synth -q --no-sync --json -j2 --metric walk --sigma-rel 0.08 "$@" >json
    grep -o '"peak_anonymous_bytes": [0-9]*' json | grep -o '[0-9]*$'
}
within() { # what, bytes, limit
    awk -v what="$1" -v bytes="$2" -v limit="$3" -v sanitize="${sanitize-}" \
        'BEGIN { print what ": " ((sanitize != "" || bytes <= limit) ? "within the limit" : bytes " > " limit) }'
}
mib=1048576
for n in 4 40; do
    mkdir edm2_$n
    for ((i = 1; i <= n / 2; i++)); do
        for sigma in 0.050 0.100; do
            ln -s "$fixtures/edm2/snapshots/network-snapshot-0000004-$sigma.pkl" \
                edm2_$n/network-snapshot-000$((1000 + 4 * i))-$sigma.pkl
        done
    done
    eval "pkl_$n=$(peak edm2_$n out$n.pkl)"
done
within "pickles, 40 of them instead of 4" $((pkl_40 - pkl_4)) $((2 * mib))
"$phema" gen -q --count 8 --steps 64 --params 4M --dtype f16 --no-sync run >/dev/null
mkdir few many
for f in run/*.safetensors; do
    name=${f#run/}
    zstd -q1 --zstd=wlog=20 <"$f" >many/"$name".zst # a window of 1 MiB, content of 8
done
ls many | tail -n 4 | while read -r name; do ln many/"$name" few/"$name"; done
few=$(peak few few.safetensors)
many=$(peak many many.safetensors)
within "16 compressed snapshots instead of 4" $((many - few)) $((12 * 2 * mib))
"$phema" synth -q --no-sync --metric walk --sigma-rel 0.08 run plain.safetensors >/dev/null
"$phema" diff many.safetensors plain.safetensors
within "a compressed output" "$(peak run packed.safetensors.zst)" $((64 * mib))
