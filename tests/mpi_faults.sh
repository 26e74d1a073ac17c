#!/usr/bin/env bash
# Processes of a team that are killed at calls that change files, and a read that fails in one: nothing is torn,
# the next run of another size makes the bytes of one process, and a failure is one sentence.
#   tests/mpi_faults.sh PROGRAM MPI_PROGRAM LAUNCHER FAULTS [MODULE [KILLS]]
set -u
# shellcheck source=support/mpi.sh
. "$(dirname "$0")/support/mpi.sh"
kills=${6:-$((4 + 6 * ${PHEMA_SLOW:-0}))}
# Rank $RANK has the fault. With $AWAITED others wait for this file before each write, a second at most: MPICH hands
# out rank 0's counter only while rank 0 calls MPI, so the one that is to fail may need it to go on.
cat >wrap <<END
#!/bin/bash
rank=\${OMPI_COMM_WORLD_RANK:-\${PMI_RANK-}}
if [ "\$rank" = "\${RANK-}" ]; then
    export LD_PRELOAD=$faults
elif [ -n "\${AWAITED-}" ]; then
    unset FAULT_TOLD FAULT_PATH FAULT_AT
    export LD_PRELOAD=$faults FAULT_CALLS=pwrite,pwrite64 FAULT_UNTIL=\$AWAITED FAULT_PAUSE=1000
fi
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
changes=open,open64,openat,openat64,pwrite,pwrite64,rename,renameat2,link,linkat,unlink,unlinkat
for ((i = 1; i <= kills; i++)); do
    n=$((2 + i % 3))
    victim=$((i / 2 % n))
    rm -rf out told
    whole=one args=(--sigma-rel "0.03,0.15,0.25" run out/)
    if [ $(((i + 1) / 2 % 2)) = 0 ]; then
        whole=packed args=(--sigma-rel 0.07 large out/z.safetensors.zst)
        mkdir -p out
    fi
    # In its first run, before the others write; in other rounds, later and beside the others.
    awaited=told at=$((1 + i % 6))
    [ $((i % 2)) = 1 ] || awaited='' at=$((2 + i * 7 % 31))
    RANK=$victim FAULT_CALLS=$changes FAULT_PATH=out/ FAULT_WITH=KILL FAULT_AT=$at FAULT_TOLD=told AWAITED=$awaited \
        team $n synth -q --no-sync -j1 "${args[@]}" >/dev/null 2>&1
    [ -z "$awaited" ] || ! grep -q calls told || fail "kill $i of rank $victim of $n: it is not killed"
    check_whole "kill $i"
    next=$((1 + i * 3 % 4)) # a process alone replaces no output that is complete
    [ $next = 1 ] && ! compgen -G 'out/*.part-*' >/dev/null && next=2
    team $next synth -q --no-sync -j1 "${args[@]}" >/dev/null 2>said ||
        fail "after kill $i of rank $victim of $n: $(cat said)"
    diff -r $whole out >&2 || fail "after kill $i of rank $victim of $n: other bytes"
done

# One process fails: ERRNO CALLS PATH TEXT. The others write when it has failed, so that they do not make all runs.
# Status 6: the file was of the output.
fails_in_one() {
    local status
    rm -rf out failed_call
    RANK=1 FAULT_CALLS=$2 FAULT_WITH=$1 FAULT_PATH=$3 FAULT_AT=1 FAULT_STAYS=1 FAULT_TOLD=failed_call AWAITED=failed_call \
        team 3 synth -q --no-sync -j1 --io read --sigma-rel 0.03,0.15,0.25 run out/ >/dev/null 2>said
    status=$?
    [ $status = 3 ] || [ $status = 6 ] || fail "$1: status $status: $(cat said)"
    grep -q "^posthoc-ema: process 2 of 3 on .*$4" said || fail "$1: $(cat said)"
    [ "$(grep -c '^posthoc-ema: ' said)" = 1 ] || fail "$1: $(cat said)"
    ls out/*.safetensors 2>/dev/null && fail "$1: there is an output"
    RANK=none team 2 synth -q --no-sync -j1 --sigma-rel 0.03,0.15,0.25 run out/ >/dev/null 2>said || fail "after $1: $(cat said)"
    diff -r one out >&2 || fail "after $1: other bytes"
}
fails_in_one EIO pread,pread64 run/snapshot 'Input/output error'
fails_in_one ENOENT open,open64,openat,openat64 run/snapshot 'No such file' # a snapshot that is gone

# Bytes that change after their run are found by whichever process compares them. Of runs of an earlier command all
# processes compare a share.
make_runs() { # RUNS...
    rm -rf out
    for i in "$@"; do posthoc-ema synth -q --no-sync --part "$i"/8 --sigma-rel 0.03,0.15,0.25 run out/ || fail "run $i"; done
}
flip() { # FILE AT
    python3 - "$@" <<'END'
import sys
with open(sys.argv[1], "r+b") as f:
    f.seek(int(sys.argv[2]))
    old = f.read(1)
    f.seek(int(sys.argv[2]))
    f.write(bytes([old[0] ^ 1]))
END
}
make_runs 1 2 3 4 5 6
partial=$(find out -name '*0.150*.partial')
for at in 40000 44096 48192; do # in three blocks of 4 KiB, one after the other
    flip "$partial" $at
    for n in 2 3; do
        RANK=none team $n synth -q --no-sync -j1 --sigma-rel 0.03,0.15,0.25 run out/ >/dev/null 2>said
        status=$?
        [ "$status $(grep -c '^posthoc-ema: ' said)" = "6 1" ] || fail "byte $at, $n processes: status $status: $(cat said)"
        grep -q "$partial: bytes [0-9]* to [0-9]* are not what part 1 has written; remove" said || fail "byte $at, $n processes: $(cat said)"
        ls out/*.safetensors 2>/dev/null && fail "byte $at, $n processes: there is an output"
    done
    flip "$partial" $at
done
RANK=none team 3 synth -q --no-sync -j1 --sigma-rel 0.03,0.15,0.25 run out/ >/dev/null || fail "after bytes were put back: status $?"
diff -r one out >&2 || fail "after bytes were put back: other bytes"

# Each rank has a share: its failure to read is that of all, and names it.
for rank in 0 1 2; do
    make_runs 1 2 3 4 5 6 7 8
    RANK=$rank FAULT_CALLS=pread,pread64 FAULT_WITH=EIO FAULT_PATH=.partial FAULT_AT=1 FAULT_STAYS=1 \
        team 3 synth -q --no-sync -j1 --sigma-rel 0.03,0.15,0.25 run out/ >/dev/null 2>said
    status=$?
    [ "$status $(grep -c '^posthoc-ema: ' said)" = "6 1" ] || fail "rank $rank cannot compare: status $status: $(cat said)"
    grep -q "^posthoc-ema: process $((rank + 1)) of 3 on .*partial: cannot be read: Input/output error" said ||
        fail "rank $rank cannot compare: $(cat said)"
    [ "$(grep -o ' on ' said | wc -l)" = 1 ] || fail "rank $rank cannot compare: two processes are named: $(cat said)"
    ls out/*.safetensors 2>/dev/null && fail "rank $rank cannot compare: there is an output"
done
RANK=none team 2 synth -q --no-sync -j1 --sigma-rel 0.03,0.15,0.25 run out/ >/dev/null || fail "after a failure to compare: status $?"
diff -r one out >&2 || fail "after a failure to compare: other bytes"

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
