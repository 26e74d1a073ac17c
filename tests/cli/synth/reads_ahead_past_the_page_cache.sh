# Files that are not in the page cache are read past it, ahead of the sums, and do not enter it. The bytes are those
# of any other way, for any depth. A filesystem that refuses is read through the
# page cache instead; --io direct then fails. Large files, of which the kernel reads ahead little for a header.
# shellcheck disable=SC2086 # options are several words
tests=$(dirname "$phema")/tests shim=$(dirname "$phema")/tests/libreading_shim.so
"$phema" gen -q --count 1 --steps 40 --params 20M --tensors 9 --dtype f16 run >/dev/null
resident() { fincore --bytes --noheadings --output RES "$@" | awk '{ n += $1 } END { print n + 0 }'; }
cool() {
    for file in run/*.safetensors; do
        dd of="$file" oflag=nocache conv=notrunc,fdatasync count=0 status=none
    done
}
if ! command -v fincore >/dev/null; then
    echo "skipped: no fincore; to run it: apt-get install util-linux-extra" >&2
    exit 77
fi
cool
if [ "$(resident run/*.safetensors)" -gt 100000 ]; then
    echo "skipped: files cannot be dropped from the page cache here" >&2
    exit 77
fi
if ! "$phema" synth -q --io direct --sigma-rel 0.1 run probe.safetensors >/dev/null 2>probe; then
    echo "skipped: files cannot be read past the page cache here" >&2
    exit 77
fi
"$phema" synth -q --no-sync --io read --sigma-rel 0.1 run one.safetensors >/dev/null
"$phema" synth -q --no-sync --io read --sigma-rel 0.05:0.25:0.02 run "many-{sigma}.safetensors" >/dev/null
cat run/*.safetensors >/dev/null
"$phema" synth -v -f --no-sync --sigma-rel 0.1 run out.safetensors 2>&1 | grep "^snapshots"

check() { # how it is started, options
    cool
    $1 "$phema" synth -v -f --no-sync $2 --sigma-rel 0.1 run out.safetensors 2>&1 | grep "^snapshots"
    cmp one.safetensors out.safetensors
    if [ "$(resident run/*.safetensors)" -gt 40000000 ]; then echo "they are in the page cache"; fi
    cool
    $1 "$phema" synth -q -f --no-sync $2 --sigma-rel 0.05:0.25:0.02 run "out-{sigma}.safetensors" >/dev/null
    for file in many-*; do cmp "$file" "out-${file#many-}"; done
}
check "env" "-j1"
check "env" "-j3"
check "env" "-j2 --io-depth 1"
check "env" "-j2 --io-depth 300"
check "env" "-j2 --max-ram $((9 + ${sanitize:+400}0))M"

echo "refused:"
"$phema" synth -q -f --io-depth 1025 --sigma-rel 0.1 run out.safetensors
for call in open read; do
    for io in auto direct; do
        cool
        env SHIM_REFUSE=$call LD_PRELOAD="$shim" "$tests/without_uring" EPERM \
            "$phema" synth -v -f -j1 --no-sync --io $io --sigma-rel 0.1 run out.safetensors 2>&1 |
            grep -E "^snapshots|^posthoc-ema"
        cmp one.safetensors out.safetensors
    done
done
