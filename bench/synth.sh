#!/usr/bin/env bash
# One average of 32 files of 100 MB (fp16), beside `cat` of the same files, in one run: median and
# range of the times, their ratio, and the peak memory.
#   bench/synth.sh [PROGRAM] [DIR]     DIR needs 3.5 GB; default: a temporary directory
# The files are read once before each timing, so that both find them in the page cache.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
phema=$(realpath "${1:-$here/build/release/posthoc-ema}")
work=${2:-$(mktemp -d)}
runs=7
[ $# -ge 2 ] || trap 'rm -rf "$work"' EXIT

[ -d "$work/run" ] || "$phema" gen --count 16 --steps 16 --params 50M --tensors 64 --dtype f16 --no-sync \
    --truth 0.1 --truth-dtype f16 "$work/run" >/dev/null
files=("$work"/run/*.safetensors)

now() { date +%s%N; }
warm() { cat "${files[@]}" >/dev/null; }
sorted() { printf '%s\n' "$@" | sort -n; }
median() { sorted "$@" | sed -n "$(($# / 2 + 1))p"; }

cats=() synths=() ratios=()
for ((i = 0; i < runs; i++)); do
    warm
    start=$(now)
    cat "${files[@]}" >/dev/null
    middle=$(now)
    "$phema" synth --quiet --force --no-sync --json --sigma-rel 0.1 "$work/run" "$work/out.safetensors" \
        >"$work/synth.json"
    end=$(now)
    cats+=($(((middle - start) / 1000000)))
    synths+=($(((end - middle) / 1000000)))
    ratios+=($(((end - middle) * 100 / (middle - start))))
done
number() { grep -o "\"$1\": [0-9]*" "$work/synth.json" | sed 's/.*: //'; }
bytes=$(cat "${files[@]}" | wc -c)

echo "machine            $(nproc) processors, $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)"
echo "input              ${#files[@]} files, $((bytes / 1000000)) MB, fp16, in the page cache; $runs runs"
printf '%-18s %5d ms   (%d to %d)\n' "cat" "$(median "${cats[@]}")" \
    "$(sorted "${cats[@]}" | head -n 1)" "$(sorted "${cats[@]}" | tail -n 1)"
printf '%-18s %5d ms   (%d to %d)   %d MB/s of input\n' "synth" "$(median "${synths[@]}")" \
    "$(sorted "${synths[@]}" | head -n 1)" "$(sorted "${synths[@]}" | tail -n 1)" \
    "$((bytes / 1000 / $(median "${synths[@]}")))"
median "${ratios[@]}" | sed -E 's/(.*)(..)$/synth \/ cat        \1.\2     (median of the ratios, run by run; aim: at most 2)/'
echo "peak anonymous     $(($(number peak_anonymous_bytes) / 1048576)) MiB"
echo "peak total         $(($(number peak_resident_bytes) / 1048576)) MiB, mapped pages of the inputs included"
