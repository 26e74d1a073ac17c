#!/usr/bin/env bash
# Processes of a team that are killed at any moment, and a read that fails in one: nothing is torn, the next
# run of another size makes the bytes of one process, and a failure is one sentence.
#   tests/mpi_faults.sh PROGRAM MPI_PROGRAM LAUNCHER FAULTS [KILLS]
set -u
# shellcheck source=support/mpi.sh
. "$(dirname "$0")/support/mpi.sh"
kills=${5:-10}
# Writes the number of its process, which is then that of the program; rank $RANK has the fault.
cat >wrap <<END
#!/bin/bash
rank=\${OMPI_COMM_WORLD_RANK:-\${PMI_RANK-}}
echo \$\$ >"pid.\$rank"
[ "\$rank" = "\${RANK-}" ] && export LD_PRELOAD=$faults
exec "\$@"
END
chmod +x wrap
team() { # N ARGUMENTS...
    timeout -k 5 60 "$launcher" "${options[@]}" -n "$1" ./wrap "$mpi" "${@:2}" </dev/null
}

posthoc-ema gen -q --count 5 --steps 300 --params 300k --tensors 9 --dtype f16 --no-sync run >/dev/null
posthoc-ema synth -q --no-sync --sigma-rel 0.03,0.15,0.25 run one/ >/dev/null
posthoc-ema gen -q --count 1 --steps 8 --params 16M --tensors 5 --no-sync large >/dev/null # larger than frames
mkdir packed
posthoc-ema synth -q --no-sync --sigma-rel 0.07 large packed/z.safetensors.zst >/dev/null
check_whole() { # WHEN
    local file
    for file in out/*.safetensors out/*.zst; do
        [ ! -e "$file" ] || cmp "$file" "$whole/${file#*/}" >&2 || fail "$1: $file is torn"
    done
}
for ((i = 1; i <= kills; i++)); do
    n=$((2 + RANDOM % 3))
    victim=$((RANDOM % n))
    [ $((i % 2)) = 1 ] && rm -rf out # otherwise what the last round has left is continued, or done already
    whole=one args=(--sigma-rel "0.03,0.15,0.25" run out/)
    if [ $(((i + 1) / 2 % 2)) = 0 ]; then
        whole=packed args=(--sigma-rel 0.07 large out/z.safetensors.zst)
        mkdir -p out
    fi
    rm -f pid.*
    team $n synth -q --no-sync -j1 "${args[@]}" >/dev/null 2>&1 &
    running=$!
    until [ -s pid.$victim ] || ! kill -0 $running 2>/dev/null; do sleep 0.01; done
    sleep "0.$((RANDOM % 6))$((RANDOM % 10))"
    [ -s pid.$victim ] && kill -9 "$(cat pid.$victim)" 2>/dev/null
    wait $running
    check_whole "kill $i"
    next=$((1 + RANDOM % 4)) # a process alone replaces no output that is complete
    [ $next = 1 ] && ! compgen -G 'out/*.part-*' >/dev/null && next=2
    team $next synth -q --no-sync -j1 "${args[@]}" >/dev/null 2>said ||
        fail "after kill $i of rank $victim of $n: $(cat said)"
    diff -r $whole out >&2 || fail "after kill $i of rank $victim of $n: other bytes"
done

# One process fails: ERRNO CALLS PATH TEXT. Where the others have made all runs before it begins, it is tried
# again. Status 6: the file was of the output.
fails_in_one() {
    local status attempt
    for attempt in 1 2 3 4 5; do
        rm -rf out
        RANK=1 FAULT_CALLS=$2 FAULT_WITH=$1 FAULT_PATH=$3 FAULT_AT=1 FAULT_STAYS=1 \
            team 3 synth -q --no-sync -j1 --io read --sigma-rel 0.03,0.15,0.25 run out/ >/dev/null 2>said
        status=$?
        grep -q '^posthoc-ema: ' said && break
    done
    [ $attempt = 5 ] && [ $status = 0 ] && fail "$1: process 1 has never made a run"
    [ $status = 3 ] || [ $status = 6 ] || fail "$1: status $status: $(cat said)"
    grep -q "^posthoc-ema: process 2 of 3 on .*$4" said || fail "$1: $(cat said)"
    [ "$(grep -c '^posthoc-ema: ' said)" = 1 ] || fail "$1: $(cat said)"
    ls out/*.safetensors 2>/dev/null && fail "$1: there is an output"
    RANK=none team 2 synth -q --no-sync -j1 --sigma-rel 0.03,0.15,0.25 run out/ >/dev/null 2>said || fail "after $1: $(cat said)"
    diff -r one out >&2 || fail "after $1: other bytes"
}
fails_in_one EIO pread,pread64 '' 'Input/output error'
fails_in_one ENOENT open,open64,openat,openat64 run/snapshot 'No such file' # a snapshot that is gone

# Another team has published the output, and has left runs beside it, or takes them away: nothing is left.
unset RANK
rm -rf out
beside() { # RUNS...
    for i in "$@"; do posthoc-ema synth -q --no-sync --force --part "$i"/8 --sigma-rel 0.03,0.15,0.25 run out/; done
    mkdir -p out
    cp one/* out
    team 2 synth -q --no-sync -j1 --sigma-rel 0.03,0.15,0.25 run out/ >/dev/null 2>said || fail "beside runs $*: $(cat said)"
    diff -r one out >&2 || fail "beside runs $*: other bytes or files"
    rm -rf out
}
beside 1 2 3 4 5 6 7 8
beside 3 5
exit $failed
