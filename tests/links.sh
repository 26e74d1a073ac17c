#!/usr/bin/env bash
# The program is linked with nothing of CUDA, so that it starts quickly and runs where there is none;
# the module is linked with what it says it uses, and shows nothing but its table.
#   tests/links.sh PROGRAM [MODULE]
set -u
# shellcheck source=support/script.sh
. "$(dirname "$0")/support/script.sh"
needed() {
    readelf -d "$1" | sed -nE 's/.*\(NEEDED\).*\[(.*)\]/\1/p'
}
[ -n "$(needed "$1")" ] || fail "readelf says nothing of $1"
needed "$1" | grep -iE 'cuda|cublas|cusolver|nvidia' && fail "$1 is linked with CUDA"
if [ $# -gt 1 ]; then
    for library in libcublas libcusolver; do
        needed "$2" | grep -q "^$library\.so" || fail "$2 is not linked with $library"
    done
    shown=$(readelf --dyn-syms -W "$2" |
        awk '$5 == "GLOBAL" && $7 != "UND" { print $8 }' | sort | tr '\n' ' ')
    [ "$shown" = "posthoc_ema_cuda " ] || fail "$2 shows $shown"
fi
exit $failed
