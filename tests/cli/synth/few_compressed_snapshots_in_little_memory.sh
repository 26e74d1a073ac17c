# With little memory, threads share the decoders of compressed snapshots again.
[ -z "${sanitize-}" ] || { echo "skipped: sanitizers take memory of their own" >&2; exit 77; }
"$phema" gen -q --count 3 --steps 30 --input-sigma 0.1 --params 9M --tensors 7 --dtype f16 --no-sync run >/dev/null
mkdir few
for file in run/*.safetensors; do
    "$phema" synth -q --no-sync --level 1 --convert "$file" "few/${file##*/}.zst" >/dev/null
done
average() { # options
    "$phema" synth -q -f --no-sync --sigma-rel 0.12 "$@" few out.safetensors >/dev/null && sha256sum <out.safetensors
}
decoders() {
    "$phema" plan -q --json "$@" --sigma-rel 0.12 --assume-bandwidth 1G few |
        sed -En 's/.*"decoders": *([0-9]+).*/\1/p'
}
[ "$(average -j7 --max-ram 24M)" = "$(average -j1)" ] && echo "the same bytes"
echo "decoders of 7 threads: $(($(decoders -j7 --max-ram 24M) / $(decoders -j3))) times those of 3"
