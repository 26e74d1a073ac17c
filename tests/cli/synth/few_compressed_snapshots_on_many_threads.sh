# Fewer compressed snapshots than threads: each thread decompresses frames of its own. The bytes are
# those of one thread, and damage is found.
"$phema" gen -q --count 3 --steps 30 --input-sigma 0.1 --params 9M --tensors 7 --dtype f16 --no-sync run >/dev/null
mkdir few
for file in run/*.safetensors; do
    "$phema" synth -q --no-sync --level 1 --convert "$file" "few/${file##*/}.zst" >/dev/null
done
average() { # threads, options
    threads=$1
    shift
    "$phema" synth -q -f --no-sync -j "$threads" --sigma-rel 0.12 "$@" few out.safetensors >/dev/null && sha256sum <out.safetensors
}
decoders() {
    "$phema" plan -q --json -j "$1" "${@:2}" --sigma-rel 0.12 --assume-bandwidth 1G few |
        sed -En 's/.*"decoders": *([0-9]+).*/\1/p'
}
one=$(average 1)
for j in 2 3 4 5 16; do
    [ "$(average $j)" = "$one" ] && echo "$j threads: the same bytes"
done
[ "$(average 4 --input-hash sampled)" = "$(average 1 --input-hash sampled)" ] && echo "the same without digests"
echo "decoders of 7 threads: $(($(decoders 7) / $(decoders 3))) times those of 3"
last=$(ls few/*.zst | tail -1)
printf '\377\377\377\377' | dd of="$last" bs=1 seek=9000000 conv=notrunc status=none
average 4 2>&1 | sed -E 's/offset [0-9]+, after [0-9]+ bytes/offset N, after N bytes/'
