# Files that are not in the page cache are read past it for a device as well, many requests at a time, and its lanes
# get the bytes that the CPU gets. Reads that are short, fail or end early are completed or named.
tests=$(dirname "$phema")/tests shim=$(dirname "$phema")/tests/libreading_shim.so slow=$(dirname "$phema")/tests/slow_mount
mkdir bin view
cp "$phema" bin/posthoc-ema
cp "$sim" bin/posthoc-ema-cuda.so
"$phema" gen -q --count 4 --steps 4 --params 2M --tensors 8 --no-sync run >/dev/null
for f in run/*.safetensors; do echo "${f#run/} 0.125"; done >weights.txt
"$slow" run view true 2>error || { [ $? = 77 ] && { cat error >&2; exit 77; }; }
"$slow" run view "$phema" synth -q --no-sync --io read --weights weights.txt view one.safetensors >/dev/null
least() { # what, number, bound
    if [ "$2" -le "$3" ]; then echo "$1: at most $3"; else echo "$1: $2, expected at most $3"; fi
}
# Reads end when eight are in flight, or when the program waits for fewer.
timeout 600 "$slow" --until 8 --report reads run view \
    bin/posthoc-ema synth -v -f -j1 --no-sync --device cuda --io-depth 16 --weights weights.txt view out.safetensors 2>&1 |
    grep '^snapshots'
cmp one.safetensors out.safetensors && echo "same: past the page cache"
least "reads that waited for others in vain" "$(sed -E 's/.*"in_vain": ([0-9]+).*/\1/' reads)" 70 # one by one: more than 100

if ! "$phema" synth -q --io direct --weights weights.txt run one.safetensors -f >/dev/null 2>probe; then
    echo "skipped: files cannot be read past the page cache here" >&2
    exit 77
fi
for options in -j1 -j3 '-j2 --io-depth 1' '-j2 --io-depth 300' "-j2 --max-ram $((16 + ${sanitize:+400}0))M" '-j1 --gpu-memory 1M'; do
    # shellcheck disable=SC2086 # several words
    bin/posthoc-ema synth -q -f --no-sync --io direct --device cuda $options --weights weights.txt run out.safetensors >/dev/null
    cmp one.safetensors out.safetensors && echo "same: ${options%%--max*}"
done
"$phema" gen -q --count 4 --steps 4 --params 100k --tensors 3 --no-sync few >/dev/null # fingerprints need no reads
"$phema" synth -q --io mmap --weights weights.txt few mapped.safetensors >/dev/null
shimmed() {
    env "$@" LD_PRELOAD="$shim" "$tests/without_uring" ENOSYS \
        bin/posthoc-ema synth -q -f -j1 --no-sync --io direct --device cuda --weights weights.txt few out.safetensors
}
show() { sed -E "s/few[^ ]*-[0-9.]+\.safetensors/few\/FILE/; s/tensor '[^']*'/tensor 'T'/; s/offset [0-9]+/offset N/; s/expected [0-9]+/expected N/"; }
shimmed SHIM_SHORT=8192 >/dev/null
cmp mapped.safetensors out.safetensors && echo "completed"
rm out.safetensors
shimmed SHIM_FAIL_AT=5 2>&1 | show
shimmed SHIM_END_AT=5 2>&1 | show
ls
