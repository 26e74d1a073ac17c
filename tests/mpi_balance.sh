#!/usr/bin/env bash
# Processes of a team that are not alike: one that is stopped takes fewer runs, each may have threads of its
# own, and they may be on several hosts. One bar shows what all do, and verify is shared as well.
#   tests/mpi_balance.sh PROGRAM MPI_PROGRAM LAUNCHER FAULTS GPUS     GPUS: a simulated CUDA module
set -u
gpus=$(readlink -f "$5") || exit 1
# shellcheck source=support/mpi.sh
. "$(dirname "$0")/support/mpi.sh"
team() { # N ARGUMENTS...
    timeout -k 5 120 "$launcher" "${options[@]}" -n "$1" ./wrap "$mpi" "${@:2}" </dev/null
}
# Rank $STOPPED stops itself before it writes, and continues when the others have made the other runs; they write
# when it has stopped. Each write waits 0.1 s at most: MPICH hands out rank 0's counter only while rank 0 calls MPI, and
# the one that is to stop may need it. With $SLOW each write takes long enough for the bar to be shown. With $THREADS rank r has r + 1 threads.
cat >wrap <<END
#!/bin/bash
rank=\${OMPI_COMM_WORLD_RANK:-\${PMI_RANK-}}
[ -n "\${STOPPED-}\${SLOW-}" ] && export LD_PRELOAD=$faults FAULT_CALLS=pwrite,pwrite64
[ -n "\${SLOW-}" ] && export FAULT_PAUSE=100
if [ -n "\${STOPPED-}" ] && [ "\$rank" != "\$STOPPED" ]; then
    export FAULT_PAUSE=100 FAULT_UNTIL=stopped
elif [ -n "\${STOPPED-}" ]; then
    export FAULT_AT=1 FAULT_WITH=STOP FAULT_TOLD=stopped
    (
        unset LD_PRELOAD
        lives() { readlink /proc/\$\$/exe; } # not so a process that has ended, and that nobody waits for
        until [ "\$(grep -l '"done": true' slow/*.part-*-of-8 | wc -l)" = 21 ]; do # of three outputs
            lives || exit
            sleep 0.02
        done
        # It tells of its stop just before: the first signal may come too early.
        while lives && kill -CONT \$\$; do sleep 0.02; done
    ) >/dev/null 2>&1 &
fi
[ -n "\${THREADS-}" ] && set -- "\$@" -j\$((rank + 1))
exec "\$@"
END
chmod +x wrap

posthoc-ema gen -q --count 5 --steps 300 --params 300k --tensors 9 --dtype f16 --no-sync run >/dev/null
posthoc-ema synth -q --no-sync --sigma-rel 0.03,0.15,0.25 run one/ >/dev/null

# ---- A slow process ----

STOPPED=1 team 3 synth -v --no-sync -j1 --sigma-rel 0.03,0.15,0.25 run slow/ >/dev/null 2>said ||
    fail "with a stopped process: $(cat said)"
diff -r one slow >&2 || fail "with a stopped process: other bytes"
read -r a b c <<<"$(sed -nE 's/^8 runs by 3 processes: ([0-9]+) ([0-9]+) ([0-9]+)$/\1 \2 \3/p' said)"
[ "$b $((a + c))" = "1 7" ] || fail "a stopped process has made: $(grep runs said)"

# ---- The bar ----

# Rank 0 alone reports, for all: what is to be read in all is estimated well, and done grows.
SLOW=1 team 3 synth --json --progress json --no-sync -j1 --sigma-rel 0.03,0.15,0.25 run bar/ >made 2>said || fail "slowly: $(cat said)"
python3 - said made <<'END' || fail "the progress of all: $(grep done_bytes said)"
import json, sys
states = [json.loads(line) for line in open(sys.argv[1]) if '"stage":"reading"' in line]
read = json.load(open(sys.argv[2]))["read_bytes"]
done = [s["done_bytes"] for s in states]
assert states and done == sorted(done) and done[0] > 0, states
assert all(s["done_bytes"] <= s["total_bytes"] and abs(s["total_bytes"] / read - 1) < 0.1 for s in states), (read, states)
END

# ---- Threads ----

THREADS=1 team 3 synth -q --no-sync --sigma-rel 0.03,0.15,0.25 run threads/ >/dev/null || fail "-j1, -j2, -j3: status $?"
diff -r one threads >&2 || fail "-j1, -j2, -j3: other bytes"

# ---- GPUs ----

# The module is found beside the program. Each process has a GPU in turn; there is none without one.
mkdir gpu
cp "$mpi" gpu/mpi && cp "$gpus" gpu/posthoc-ema-cuda.so
cpu=$mpi
mpi=gpu/mpi
SIM_DEVICES=2 team 3 synth -q --json --no-sync -j1 --device cuda --sigma-rel 0.03,0.15,0.25 run dealt/ >said || fail "with GPUs: status $?"
grep -q '"device": *"cuda:0 ' said || fail "with GPUs: $(grep device said)"
diff -r one dealt >&2 || fail "with GPUs: other bytes"
SIM_DEVICES=0 team 2 synth -q --no-sync -j1 --device cuda --sigma-rel 0.1 run absent.safetensors >/dev/null 2>said
[ "$? $(grep -c '^posthoc-ema: ' said)" = "7 1" ] || fail "without a GPU: $(cat said)"
mpi=$cpu

# ---- verify ----

same() { # OUT: what processes find is what one finds
    local n one many
    posthoc-ema verify --json "$1" >one.json 2>/dev/null
    one=$?
    for n in 2 3; do
        team $n verify --json "$1" >many.json 2>/dev/null
        many=$?
        [ $many = $one ] || fail "verify $1: status $many, not $one, of $n processes"
        diff <(grep -vE '"(seconds|tiles|tiles_compared)"' one.json) <(grep -vE '"(seconds|tiles|tiles_compared)"' many.json) >&2 ||
            fail "verify $1: $n processes find something else"
    done
}
out=$(find one -name '*.safetensors' | sort | head -n 1)
same "$out"
cp "$out" bent.safetensors
for at in 300000 450000; do # in two tensors
    printf '\x55' | dd of=bent.safetensors bs=1 seek=$at conv=notrunc status=none
done
same bent.safetensors
posthoc-ema verify bent.safetensors >/dev/null && fail "two wrong bytes are not found"
posthoc-ema synth -q --no-sync --into run/snapshot-0000300-0.050.safetensors --sigma-rel 0.1 run copy.safetensors >/dev/null
same copy.safetensors
printf '\x55' | dd of=copy.safetensors bs=1 seek=300000 conv=notrunc status=none
same copy.safetensors
posthoc-ema synth -q --no-sync --sigma-rel 0.1 run out.safetensors.zst >/dev/null
same out.safetensors.zst # by rank 0
cp -r run moved
posthoc-ema synth -q --no-sync --sigma-rel 0.1 moved later.safetensors >/dev/null
python3 - moved/snapshot-0000180-0.050.safetensors <<'END'
import os, sys # another byte of the data, which no sample sees, at the same time
st = os.stat(sys.argv[1])
with open(sys.argv[1], "r+b") as f:
    f.seek(st.st_size - 1001)
    old = f.read(1)
    f.seek(st.st_size - 1001)
    f.write(bytes([old[0] ^ 1]))
os.utime(sys.argv[1], ns=(st.st_atime_ns, st.st_mtime_ns))
END
same later.safetensors
exit $failed
