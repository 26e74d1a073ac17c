# A snapshot is named even if its fingerprint misses the change, whether the output differs or rounding hides
# the change. The digest of all data read from the snapshot shows the change.
flip() { # file, offset from the end, bits
    local at=$(($(stat -c %s "$1") - $2)) byte
    byte=$(od -An -tu1 -j $at -N1 "$1")
    printf "\\$(printf %o $((byte ^ $3)))" | dd of="$1" bs=1 seek=$at conv=notrunc status=none
}
verify() {
    "$phema" verify -q "$@"
    echo "status $?"
}
"$phema" gen -q --count 4 --params 600k --dtype f16 --steps 40 run >/dev/null
oldest=run/snapshot-0000010-0.050.safetensors newest=run/snapshot-0000040-0.100.safetensors
"$phema" synth -q --sigma-rel 0.1 run out.safetensors >/dev/null
"$phema" synth -q --sigma-rel 0.1 --input-hash sampled run sampled.safetensors >/dev/null
"$phema" synth -q --sigma-rel 0.1 --into "$newest" run into.safetensors >/dev/null
echo "- as they were"
verify out.safetensors
echo "- a bit that is rounded away"
flip $oldest 10000 1
verify out.safetensors
echo "- a copy, whose provenance is beside it"
verify into.safetensors
echo "- an output that knows windows alone"
verify sampled.safetensors
echo "- a few tiles say nothing of it"
verify --sample 3 out.safetensors
echo "- one that shows as well"
flip $newest 10001 63
verify out.safetensors
verify --json -j1 --io mmap out.safetensors | sed 's/"seconds": .*/"seconds": …/'
verify sampled.safetensors
echo "- as they were again"
flip $newest 10001 63
flip $oldest 10000 1
verify out.safetensors
verify --json out.safetensors | sed 's/"seconds": .*/"seconds": …/'
echo "- the provenance of a version that did not say it"
cp into.safetensors.json kept
sed -i 's/,"data_xxh3":"[0-9a-f]*"//g' into.safetensors.json
flip $oldest 10000 1
verify into.safetensors
echo "- one that is damaged"
sed 's/"data_xxh3":"./"data_xxh3":"-/' kept >into.safetensors.json
verify into.safetensors
sed 's/,"data_xxh3":"[0-9a-f]*"//' kept >into.safetensors.json
verify into.safetensors
