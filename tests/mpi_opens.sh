#!/usr/bin/env bash
# Of the files of snapshots, processes other than the first open those that they read, and each once; the
# first one finds and plans for all. Markers of other runs are read once. Counted by strace.
#   tests/mpi_opens.sh PROGRAM MPI_PROGRAM LAUNCHER
set -u
# shellcheck source=support/mpi.sh
. "$(dirname "$0")/support/mpi.sh"
command -v strace >/dev/null || {
    echo "skipped: no strace; to run it: apt-get install strace" >&2
    exit 77
}
strace -o /dev/null true 2>/dev/null || {
    echo "skipped: strace is not allowed here; to run it: sudo scripts/test -R mpi" >&2
    exit 77
}
cat >trace <<'END'
#!/bin/bash
rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK-}}
exec strace -f -qq -e trace=openat,open,creat -o "trace.$rank" "$@"
END
chmod +x trace
team() { # N ARGUMENTS...
    rm -f trace.*
    timeout 240 "$launcher" "${options[@]}" -n "$1" ./trace "$mpi" "${@:2}" </dev/null
}
opened() { # RANK PATTERN: names, one for each time
    sed -nE 's/.*open(at)?\((AT_FDCWD, )?"([^"]*)".*/\3/p' "trace.$1" | grep -E "^($2)"
}

posthoc-ema gen -q --count 12 --steps 300 --params 100k --tensors 12 --dtype f16 --no-sync run >/dev/null
posthoc-ema synth -q --no-sync --sigma-rel 0.1 --at 200 run one.safetensors >/dev/null
team 3 synth -q --no-sync -j1 --sigma-rel 0.1 --at 200 run out.safetensors >/dev/null || fail "the team fails"
cmp one.safetensors out.safetensors || fail "the team makes other bytes"
used=$(posthoc-ema weights --json --sigma-rel 0.1 --at 200 run | grep -c '"file"')
late=$(find run -name 'snapshot-00002[0-9][0-9]-*' -o -name 'snapshot-0000300-*' | sort | sed 's/$/$/' | paste -sd'|')
[ -n "$late" ] || fail "there are no snapshots after the target"
for rank in 1 2; do
    twice=$(opened $rank run/ | sort | uniq -d)
    [ -z "$twice" ] || fail "rank $rank opens more than once: $twice"
    n=$(opened $rank run/ | wc -l)
    [ "$n" -le "$used" ] || fail "rank $rank opens $n snapshots of $used"
    opened $rank 'run/[^"]*json' && fail "rank $rank looks for descriptions"
    grep -E '"run/?".*O_DIRECTORY' "trace.$rank" && fail "rank $rank lists the directory"
    opened $rank "$late" | grep -v -- '-0000200-' && fail "rank $rank opens snapshots that no output needs"
done
[ "$(opened 0 run/ | sort -u | grep -c '\.safetensors$')" = 24 ] || fail "rank 0 does not open all snapshots"

# Open MPI looks for no network where all processes are on one machine
grep -E '/mca_(mtl|pml_cm)[^"]*[.]so"' trace.0 && fail "a team on one machine loads modules for networks"

# a process looks at the markers of other processes in the first of its runs alone
for rank in 1 2; do
    late=$(awk -F'"' '!/part-[0-9]+-of-8"/ { next }
        NR == FNR { if (/O_CREAT/) own[$2]; next }
        $2 in own { if (/O_CREAT/) n_runs++; next }
        n_runs > 1 { print $2 }' "trace.$rank" "trace.$rank")
    [ -z "$late" ] || fail "rank $rank reads markers of others in later runs: $late"
done

# in files of a snapshot, those that hold the runs of the rank
mkdir shards
for file in run/*; do
    posthoc-ema synth -q --no-sync --convert --shard-size 10k "$file" "shards/$(basename "$file" .safetensors)" >/dev/null
done
all=$(find shards -name '*-of-*.safetensors' | wc -l)
posthoc-ema synth -q --no-sync --sigma-rel 0.1 shards one-s.safetensors >/dev/null
team 3 synth -q --no-sync -j1 --sigma-rel 0.1 shards out-s.safetensors >/dev/null || fail "shards: the team fails"
cmp one-s.safetensors out-s.safetensors || fail "shards: the team makes other bytes"
n=0
for rank in 1 2; do
    twice=$(opened $rank shards/ | sort | uniq -d)
    [ -z "$twice" ] || fail "rank $rank opens more than once: $twice"
    opened $rank 'shards/.*json' && fail "rank $rank reads an index"
    n=$((n + $(opened $rank shards/ | wc -l)))
done
# Where two of the 8 runs meet, both may open a shard of each of 24 snapshots, whoever makes them.
[ $n -le $((all + 7 * 24)) ] || fail "two ranks open $n shards of $all"
[ "$failed" = 0 ] && echo "12 x 2 snapshots: rank 0 $(opened 0 shards/ | wc -l) opens for $all shards, two others $n"
exit $failed
