#!/usr/bin/env bash
# The static program needs no shared libraries except libc's, and has all functions: it solves, averages,
# compresses and draws.
#   tests/static.sh PROGRAM
set -u
# shellcheck source=support/script.sh
. "$(dirname "$0")/support/script.sh"
program=$(readlink -f "$1") || exit 1
others=$(readelf -d "$program" | sed -nE 's/.*\(NEEDED\).*\[(.*)\]/\1/p' |
    grep -vE '^(libc|libm|libpthread|libdl|librt)\.so\.[0-9]+$|^ld-linux[a-z0-9-]*\.so\.[0-9]+$')
if [ -n "$others" ]; then
    fail "needs $others"
fi
cd "$work" || exit 1
# LAPACK is part of the program, or comes from the machine's OpenBLAS
{
    "$program" gen -q --count 360 --params 100 --truth 0.1 --no-sync run &&
        "$program" weights -q --metric profile --solver lapack --sigma-rel 0.1 run &&
        "$program" synth -q --sigma-rel 0.1 --no-sync run out.safetensors.zst &&
        "$program" diff -q --tolerance 1e-3 out.safetensors.zst run/truth/* &&
        "$program" plot -q profiles --sigma-rel 0.1 --last 4 run -o a.png --csv a.csv &&
        "$program" plot -q profiles --sigma-rel 0.1 --last 4 run -o a.pdf &&
        [ "$(head -c 4 a.pdf)" = %PDF ] && [ "$(head -c 4 a.png | tail -c 3)" = PNG ]
} >/dev/null || fail "does not do what the other program does"
exit $failed
