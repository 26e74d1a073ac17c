#!/usr/bin/env bash
# The compiled kernels are as planned: their size, registers, shared memory and occupancy, and sums of fused
# multiply-adds alone.
#   tests/ptx/code.sh registers PTXAS MODULE PTX...    PTX itself, and by ptxas -v
#   tests/ptx/code.sh machine PTXAS PTX...             by nvdisasm: in PATH, beside ptxas or in build/cuda-tools
# PTX: kernels_80.ptx and others, each for the architecture in its name. Prints what it found for each kernel.
# shellcheck disable=SC2016 # programs of awk
set -euo pipefail
what=$1 ptxas=$2
shift 2
root=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() {
    echo "FAILED: $*"
    exit 1
}
# average_kernel<Sum, In, N>, round_kernel<Sum>, widen_kernel<Sum>: "average d 0 8", "round f"
names='{ if (match($0, /(average|round|widen)_kernelI[df](L[0-9]*phema_cuda_dtype[0-9]Lj[0-9]*|Lj|E|L[^ ]*)/)) {
    name = substr($0, RSTART); sub(/EEv11runtime_job.*|EEvPh11.*|EvPh.*/, "", name)
    gsub(/_kernelI|L16phema_cuda_dtype|ELj|E+$/, " ", name); sub(/(average|round|widen) [df]/, "& ", name)
    gsub(/ +/, " ", name); sub(/ $/, "", name) } }'

# Operations on floating-point numbers, by kernel: fused ones, products, all others.
# A product is part of decoding F16, exact by construction, and occurs nowhere else. An absolute value may be
# written as the sum of it and zero.
count='/DADD [^;]*, -RZ, \|/ { next } { for (i = 1; i <= NF; i++) {
    if ($i ~ /^(fma\.rn\.f|DFMA|FFMA)/) { fused[name]++; break }
    if ($i ~ /^(mul\.(rn\.)?f|DMUL|FMUL)/) { products[name]++; break }
    if ($i ~ /^((add|sub|mad|div|rcp|sqrt)\.(rn\.)?f|DADD|FADD|MUFU|HADD|HMUL|HFMA2\.[BM]|.MMA)/) { others[name]++; break } } }
    END { for (k in seen) printf "%s: %d fused, %d products, %d others\n", k, fused[k], products[k], others[k] }'
# The loop over inputs, twice unrolled, and its remainder: four numbers of each target.
check_sums() { # what, file of counts
    sed "s/^/$1  /" "$2"
    awk '{ split($0, part, /: |, /); split(part[1], kernel, " "); n = kernel[1] == "average" ? 12 * kernel[4] : 0
        if (part[2] + 0 != n || part[4] + 0 || (part[3] + 0 && kernel[3] != "0" && kernel[1] != "widen")) {
            print "FAILED: expected " n " fused and no others, found: " $0; failed = 1 } }
        END { if (NR != 18) { print "FAILED: expected 18 kernels, found " NR; failed = 1 } exit failed }' "$2"
}

if [ "$what" = registers ]; then
    bytes=$(stat -c %s "$1")
    shift
    echo "$bytes bytes of the plug-in (at most 2000000)"
    [ "$bytes" -le 2000000 ] || fail 'the plug-in is too large'
    for ptx; do
        arch=${ptx##*_} arch=${arch%.ptx}
        lines=$(wc -l <"$ptx")
        echo "$lines lines of PTX for compute_$arch (at most 15000)"
        [ "$lines" -le 15000 ] || fail 'too many lines of PTX'
        awk "$names"' /\.entry/ { seen[name] = 1 } '"$count" "$ptx" | sort >"$scratch/counts"
        check_sums "compute_$arch" "$scratch/counts"
        # A multiprocessor has 65536 registers in four parts, given to warps in units of 256; 64 warps; at most
        # 32 blocks; shared memory, of which each block takes 1 KiB more (CUDA programming guide, table 24).
        shared_kib=228
        [ "$arch" = 80 ] && shared_kib=164
        "$ptxas" -v -arch="sm_$arch" "$ptx" -o "$scratch/code" 2>"$scratch/log" ||
            fail "ptxas: $(tail -n 3 "$scratch/log")"
        awk -v arch="$arch" -v shared_kib=$shared_kib "$names"'
            /spill stores/ { spills = $1 + $5 + $9 }
            /Used [0-9]+ registers/ {
                registers = $5; shared = 0
                if (match($0, /[0-9]+ bytes smem/)) shared = substr($0, RSTART) + 0
                split(name, part, " ")
                scalar = part[2] == "d" ? 8 : 4; n = part[4]
                # weights and indices of 64 inputs, four counts for each target
                planned = part[1] == "average" ? 64 * scalar * n + 64 * 4 + 16 * n : part[1] == "round" ? 16 : 0
                most = part[1] != "average" ? 32 : n == 1 ? 48 : scalar == 8 ? 128 : 80
                warps = 4 * int(16384 / (256 * int((registers * 32 + 255) / 256)))
                blocks = int(warps / 8); if (blocks > 8) blocks = 8
                by_shared = int(shared_kib * 1024 / (shared + 1024)); if (by_shared < blocks) blocks = by_shared
                printf "sm_%-3s %-16s %3d registers %5d bytes shared  %d blocks, occupancy %3d %%\n", arch, name, registers, shared, blocks, blocks * 12.5
                if (spills || registers > most || shared != planned) {
                    printf "FAILED: expected no spill, %d registers at most, %d bytes of shared memory\n", most, planned
                    failed = 1
                }
                n_kernels++
            }
            END { if (n_kernels != 18) { print "FAILED: expected 18 kernels, found " n_kernels + 0; failed = 1 } exit failed }' "$scratch/log"
    done
    exit
fi

# cuobjdump would not help: it calls nvdisasm.
nvdisasm=$(command -v nvdisasm || ls "$(dirname "$ptxas")/nvdisasm" 2>/dev/null ||
    find "$root/build/cuda-tools" -name nvdisasm -type f 2>/dev/null | head -n 1) || true
if [ -z "$nvdisasm" ]; then
    echo "skipped: no nvdisasm; to run it: python3 -m venv build/cuda-tools &&" \
        "build/cuda-tools/bin/pip install nvidia-cuda-nvdisasm==13.5.37"
    exit 77
fi
for ptx; do
    arch=${ptx##*_} arch=${arch%.ptx}
    "$ptxas" -arch="sm_$arch" "$ptx" -o "$scratch/code"
    "$nvdisasm" -c "$scratch/code" | awk '/^\.text\./ { print; next } /^ +\/\*[0-9a-f]+\*\// { print }' |
        awk "$names"' /^\.text\./ { seen[name] = 1; next } '"$count" | sort >"$scratch/counts"
    check_sums "sm_$arch" "$scratch/counts"
done
