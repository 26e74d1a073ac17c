#!/usr/bin/env bash
# The same 32 snapshots of 100 MB (fp16) in every format that is read: time of one average beside
# `cat` of the files (`zstd -dc` of the compressed ones), and the peak of anonymous memory.
#   bench/formats.sh [PROGRAM] [DIR]     DIR needs 14 GB; default: a temporary directory
# Files of PyTorch and EDM2 are written by torch (python3-torch), and left out where there is none.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
phema=$(realpath "${1:-$here/build/release/posthoc-ema}")
work=${2:-$(mktemp -d)}
python=${PYTHON:-/usr/bin/python3}
[ $# -ge 2 ] || trap 'rm -rf "$work"' EXIT

[ -d "$work/run" ] || "$phema" gen --count 16 --steps 16 --params 50M --tensors 64 --dtype f16 --no-sync \
    --truth 0.1 --truth-dtype f16 "$work/run" >/dev/null
mkdir -p "$work"/{zst,zst-no-table,pt,pkl}
for file in "$work"/run/*.safetensors; do
    name=$(basename "$file")
    [ -e "$work/zst/$name.zst" ] ||
        "$phema" synth -q --no-sync --level 1 --convert "$file" "$work/zst/$name.zst" >/dev/null
    [ -e "$work/zst-no-table/$name.zst" ] || zstd -q -1 <"$file" >"$work/zst-no-table/$name.zst"
done
(cd / && "$python" - "$work") <<'PYTHON' || echo "torch is not importable: no .pt, no .pkl" >&2
import json, pathlib, pickle, struct, sys
import torch
work = pathlib.Path(sys.argv[1])
for file in sorted((work / "run").glob("*.safetensors")):
    prefix, time, sigma = file.stem.rsplit("-", 2)
    pt, pkl = work / "pt" / f"0.{int(time)}.{sigma}.pt", work / "pkl" / f"net-{time}-{sigma}.pkl"
    if pt.exists() and pkl.exists():
        continue
    data = file.read_bytes()
    size, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__")
    state = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        flat = torch.frombuffer(bytearray(data[8 + size + begin:8 + size + end]), dtype=torch.float16)
        state[name] = flat.reshape(entry["shape"]).clone()
    torch.save(state, pt)
    with open(pkl, "wb") as out:
        pickle.dump({"ema": state}, out, protocol=4)
PYTHON

now() { date +%s%N; }
number() { grep -o "\"$1\": [0-9]*" "$work/synth.json" | sed 's/.*: //'; }
echo "machine  $(nproc) processors, $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)"
printf '%-14s %9s %9s %7s %10s   %s\n' format synth "cat" ratio anonymous "(median of 3 ratios; files in the page cache)"
for format in run zst zst-no-table pt pkl; do
    mapfile -t files < <(find "$work/$format" -maxdepth 1 -type f | sort)
    [ ${#files[@]} -gt 0 ] || continue
    options=()
    [ $format = pt ] && options=(--name-regex '^0\.(?<time>[0-9]+)\.(?<sigma>.*)\.pt$')
    ratios=()
    for _ in 1 2 3; do
        cat "${files[@]}" >/dev/null
        start=$(now)
        case $format in
        zst*) zstd -dcq "${files[@]}" >/dev/null ;;
        *) cat "${files[@]}" >/dev/null ;;
        esac
        middle=$(now)
        "$phema" synth --quiet --force --no-sync --json --sigma-rel 0.1 "${options[@]}" "$work/$format" \
            "$work/out.safetensors" >"$work/synth.json"
        end=$(now)
        ratios+=("$(((end - middle) * 100 / (middle - start))) $(((end - middle) / 1000000)) $(((middle - start) / 1000000))")
    done
    read -r ratio ours theirs < <(printf '%s\n' "${ratios[@]}" | sort -n | sed -n 2p)
    printf '%-14s %6d ms %6d ms %4d.%02d %6d MiB\n' $format "$ours" "$theirs" $((ratio / 100)) \
        $((ratio % 100)) $(($(number peak_anonymous_bytes) / 1048576))
done
