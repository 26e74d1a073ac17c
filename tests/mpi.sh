#!/usr/bin/env bash
# posthoc-ema-mpi with a real mpirun: the bytes of one process for any number of processes and any form of
# output; a process that is killed or fails; what a team refuses.
#   tests/mpi.sh PROGRAM MPI_PROGRAM LAUNCHER FAULTS
set -u
# shellcheck source=support/mpi.sh
. "$(dirname "$0")/support/mpi.sh"
team() { # N ARGUMENTS...
    timeout 300 "$launcher" "${options[@]}" -n "$1" "${wrapper[@]}" "$mpi" "${@:2}" </dev/null
}
wrapper=()
# The process of rank $RANK has the fault of libfaults.
cat >wrap <<END
#!/bin/bash
[ "\${OMPI_COMM_WORLD_RANK:-\${PMI_RANK-}}" = "\$RANK" ] && export LD_PRELOAD=$faults
exec "\$@"
END
chmod +x wrap

posthoc-ema gen -q --count 5 --steps 300 --params 300k --tensors 9 --dtype f16 --no-sync run >/dev/null
check() { # NAME NUMBERS OUT ARGUMENTS...
    local name=$1 numbers=$2 out=$3 n
    posthoc-ema synth -q --no-sync "${@:4}" "one-$out" >paths || fail "$name: one process fails"
    for n in $numbers; do
        team "$n" synth -q --no-sync -j1 "${@:4}" "n$n-$out" >got || fail "$name: $n processes fail"
        diff <(sed 's/^one-//' paths) <(sed "s/^n$n-//" got) >&2 || fail "$name: $n processes print other paths"
        while read -r path; do
            for file in "$path" "$path.json"; do # a copy has its provenance beside it
                [ ! -e "$file" ] || diff -r "$file" "n$n-${file#one-}" >&2 || fail "$name: $n processes make other bytes in $file"
            done
            rm -rf "n$n-${path#one-}" "n$n-${path#one-}.json"
        done <paths
    done
    rm -rf one-* n[0-9]*-*
}
check "three widths" "1 2 3 5" sweep/ --sigma-rel 0.03,0.15,0.25 run
check "25 targets" 3 many/ --sigma-rel 0.01:0.25:0.01 --dtype f32 run
check "a rule" 2 rule.safetensors --sigma-rel 0.1 --rule '.*1.*=0.2' run
check "sums in float64" 2 f64.safetensors --sigma-rel 0.1 --accumulate f64 run
check "shards" 3 shards --sigma-rel 0.1 --shard-size 100k run
check "a distributed checkpoint" 3 dcp --sigma-rel 0.1 --ranks 2 run
check "a conversion" 2 conv.safetensors --convert run/snapshot-0000300-0.050.safetensors
# snapshots of other formats, whose places are sent to the other processes
for form in "pieces --ranks 3" "shards --shard-size 100k" "packed"; do
    read -r name how <<<"$form"
    mkdir "$name"
    for file in run/*; do
        to=$name/$(basename "$file" .safetensors)
        [ "$name" = packed ] && to+=.safetensors.zst
        # shellcheck disable=SC2086 # words
        posthoc-ema synth -q --no-sync --convert $how "$file" "$to" >/dev/null || fail "$name: $file"
    done
    check "snapshots in $name" 3 of-"$name".safetensors --sigma-rel 0.1 "$name"
done
# copies, whose provenance is beside them
ema=(--input-sigma "0.05,0.28" --update-every 5 "$fixtures/ema_pytorch/snapshots")
check "copies" "1 2 3 5" '{sigma}.pt' --sigma-rel 0.05,0.1 "${ema[@]}"
check "read-back copies" 2 '{sigma}.pt' --verify --sigma-rel 0.05,0.1 "${ema[@]}"
check "copies of times" 3 '{time}-{sigma}.pt' --sigma-rel 0.05,0.1 --at 200,300 "${ema[@]}"
check "pickles" "2 5" '{sigma}.pkl' --sigma-rel 0.05,0.1 "$fixtures/edm2/snapshots"
check "copies of safetensors" "1 2 3 5" 'c{sigma}.safetensors' --into run/snapshot-0000300-0.050.safetensors --sigma-rel 0.03,0.1 run
mkdir zips
python3 "$fixtures/../tests/support/torch_zips.py" zips
printf 'a.1.pt 0.5\na.2.pt 0.25\n' >weights
zips=(--name-regex 'a[.](?<time>\d+)' --weights weights zips)
check "records that runs share" "1 2 3 5" zip.pt "${zips[@]}"
check "copies of directories" "2 3" copy --into pieces/snapshot-0000300-0.050 --sigma-rel 0.1 pieces
check "compressed outputs" "1 2 3 5" '{sigma}.safetensors.zst' --sigma-rel 0.03,0.15,0.25 run
# runs of 8 MB, so that processes compress frames of 4 MiB and rank 0 those between the runs
posthoc-ema gen -q --count 1 --steps 8 --params 16M --tensors 5 --no-sync large >/dev/null
check "a compressed output of many frames" "1 2 3 5" z.safetensors.zst --sigma-rel 0.07 large
check "a compressed output that is read back" 2 z.safetensors.zst --verify --sigma-rel 0.07 large
# outputs that one process makes as a whole
whole=(--dtype same --sigma-rel "0.05,0.1,0.2" "$fixtures/scaled/channel")
check "outputs with new scales" "1 2 3 5" 'w{sigma}.safetensors' "${whole[@]}"
check "outputs that are read back" 2 verified.safetensors --verify --sigma-rel 0.1 run

# the runs are those of all, and each is made once
team 3 synth -v --no-sync -j1 --sigma-rel 0.1 run v.safetensors >/dev/null 2>said || fail "-v fails"
sum=$(sed -nE 's/^8 runs by 3 processes: ([0-9]+) ([0-9]+) ([0-9]+)$/\1+\2+\3/p' said)
[ "$((sum))" = 8 ] || fail "-v says of the runs: $(grep runs said)"
# counting pages of all files after each run took longer than the run
sizes=$(grep accumulate said | grep -o iB | wc -l)
((sizes >= 1 && sizes <= 4)) || fail "a team counts pages of the page cache: $(grep accumulate said)"

# a process that is killed; a team of another size continues
posthoc-ema synth -q --no-sync --sigma-rel 0.03,0.15,0.25 run one/ >/dev/null
wrapper=(./wrap)
for at in 1 2 3 4 6 9 13 18 24 30; do
    rm -rf killed
    RANK=$((at % 3)) FAULT_CALLS=pwrite,pwrite64 FAULT_WITH=KILL FAULT_AT=$at \
        team 3 synth -q --no-sync -j1 --sigma-rel 0.03,0.15,0.25 run killed/ >/dev/null 2>&1
    ls killed/*.safetensors >/dev/null 2>&1 && for file in killed/*.safetensors; do
        cmp "$file" "one/${file#*/}" >&2 || fail "killed at $at: $file is torn"
    done
    RANK=none team $((1 + at % 4)) synth -q --no-sync -j1 --sigma-rel 0.03,0.15,0.25 run killed/ >/dev/null 2>said ||
        fail "after the kill at $at: $(cat said)"
    diff -r one killed >&2 || fail "after the kill at $at: other bytes"
done

# the same of a copy, and of a join that is killed before and after its provenance is there
posthoc-ema synth -q --no-sync "${zips[@]}" one.pt >/dev/null
for at in pwrite,pwrite64:1 pwrite,pwrite64:5 pwrite,pwrite64:12 pwrite,pwrite64:22 rename,renameat2:1 rename,renameat2:2 unlink:1 unlink:9; do
    rank=0 # which joins
    [[ $at = pwrite* ]] && rank=$((${at#*:} % 3))
    RANK=$rank FAULT_CALLS=${at%:*} FAULT_WITH=KILL FAULT_AT=${at#*:} \
        team 3 synth -q --no-sync -j1 "${zips[@]}" killed.pt >/dev/null 2>&1
    [ ! -e killed.pt ] || { cmp one.pt killed.pt && cmp one.pt.json killed.pt.json; } >&2 || fail "a copy, killed at $at, is torn"
    RANK=none team $((2 + ${at#*:} % 2)) synth -q --no-sync -j1 "${zips[@]}" killed.pt >/dev/null 2>said ||
        fail "a copy, after the kill at $at: $(cat said)"
    { cmp one.pt killed.pt && cmp one.pt.json killed.pt.json; } >&2 || fail "a copy, after the kill at $at: other bytes"
    rm -f killed.pt killed.pt.json
    ls killed.pt* >/dev/null 2>&1 && fail "a copy, after the kill at $at: there is $(echo killed.pt*)"
    rm -f killed.pt*
done

# the same of a compressed output, and of rank 0 that is killed while it puts the frames together, publishes
# them, and removes those of the runs
posthoc-ema synth -q --no-sync --sigma-rel 0.07 large one.safetensors.zst >/dev/null
for at in pwrite,pwrite64:1 pwrite,pwrite64:40 pwrite,pwrite64:80 rename,renameat2:2 rename,renameat2:9 unlink:1 unlink:2 unlink:7; do
    rank=0
    [[ $at = pwrite* ]] && rank=$((${at#*:} % 3))
    RANK=$rank FAULT_CALLS=${at%:*} FAULT_WITH=KILL FAULT_AT=${at#*:} \
        team 3 synth -q --no-sync -j1 --sigma-rel 0.07 large killed.safetensors.zst >/dev/null 2>&1
    [ ! -e killed.safetensors.zst ] || cmp one.safetensors.zst killed.safetensors.zst >&2 || fail "a compressed output, killed at $at, is torn"
    RANK=none team $((2 + ${at#*:} % 2)) synth -q --no-sync -j1 --sigma-rel 0.07 large killed.safetensors.zst >/dev/null 2>said ||
        fail "a compressed output, after the kill at $at: $(cat said)"
    cmp one.safetensors.zst killed.safetensors.zst >&2 || fail "a compressed output, after the kill at $at: other bytes"
    [ "$(echo killed.*)" = killed.safetensors.zst ] || fail "a compressed output, after the kill at $at: there is $(echo killed.*)"
    rm -f killed.*
done

# the same of outputs that one process makes as a whole
posthoc-ema synth -q --no-sync "${whole[@]}" 'w{sigma}.safetensors' >paths
for at in 1 3 6; do
    RANK=$((at % 3)) FAULT_CALLS=pwrite,pwrite64 FAULT_WITH=KILL FAULT_AT=$at \
        team 3 synth -q --no-sync -j1 "${whole[@]}" 'k{sigma}.safetensors' >/dev/null 2>&1
    RANK=none team 2 synth -q --no-sync -j1 "${whole[@]}" 'k{sigma}.safetensors' >/dev/null 2>said ||
        fail "whole outputs, after the kill at $at: $(cat said)"
    while read -r path; do
        cmp "$path" "k${path#w}" >&2 || fail "whole outputs, after the kill at $at: other bytes"
    done <paths
    leftovers=$(find . -maxdepth 1 -name 'k0*' ! -name '*.safetensors')
    [ -z "$leftovers" ] || fail "whole outputs, after the kill at $at there is $leftovers"
    rm -f k0*
done

# rank 0 is killed while it publishes; the same command finishes it
for at in 1 2 3; do
    rm -rf killed
    RANK=0 FAULT_CALLS=rename,renameat2 FAULT_WITH=KILL FAULT_AT=$at \
        team 2 synth -q --no-sync -j1 --sigma-rel 0.03,0.15,0.25 run killed/ >/dev/null 2>&1 && fail "rank 0 lives after rename $at"
    RANK=none team 2 synth -q --no-sync -j1 --sigma-rel 0.03,0.15,0.25 run killed/ >/dev/null 2>said || fail "after rename $at: $(cat said)"
    diff -r one killed >&2 || fail "after rename $at: other bytes"
done

# a disk that is full for one process: its sentence once, with its host, and one status
RANK=1 FAULT_CALLS=pwrite,pwrite64 FAULT_WITH=ENOSPC FAULT_AT=1 FAULT_STAYS=1 \
    team 3 synth -q --no-sync -j1 --sigma-rel 0.1 run full.safetensors >got 2>said
status=$?
grep -q '^posthoc-ema: ' said && {
    [ $status = 6 ] || fail "a full disk: status $status"
    [ "$(grep -c '^posthoc-ema: ' said)" = 1 ] || fail "a full disk: $(cat said)"
    grep -q '^posthoc-ema: process 2 of 3 on .*No space left' said || fail "a full disk: $(cat said)"
    [ -e full.safetensors ] && fail "a full disk: there is an output"
}
wrapper=()
team 2 synth -q --no-sync -j1 --sigma-rel 0.1 run full.safetensors >/dev/null || fail "after a full disk: status $?"
posthoc-ema verify -q full.safetensors >/dev/null || fail "after a full disk: other bytes"

# what a team refuses, in one sentence
refuses() { # STATUS TEXT ARGUMENTS...
    team 2 "${@:3}" >got 2>said
    local status=$?
    [ $status = "$1" ] || fail "${*:3}: status $status"
    [ "$(grep -c '^posthoc-ema: ' said)" = 1 ] || fail "${*:3}: not one sentence: $(cat said)"
    grep -qF -e "$2" said || fail "${*:3}: $(cat said)"
}
# each of several processes that MPI sees alone, since the launcher is that of another library
alone() { # VARIABLES OF A LAUNCHER...
    env "$@" timeout 120 "$mpi" synth -q --sigma-rel 0.1 run alone.safetensors >got 2>said </dev/null
    local status=$?
    [ $status = 2 ] || fail "$*: status $status: $(cat said)"
    grep -q '^posthoc-ema: this is process 2 of 3 .*another MPI library' said || fail "$*: $(cat said)"
    [ -e alone.safetensors ] && fail "$*: there is an output"
}
alone RANK=1 WORLD_SIZE=3
alone SLURM_PROCID=1 SLURM_NTASKS=3
refuses 2 'share the work already' synth --part 1/2 --sigma-rel 0.1 run out.safetensors
refuses 2 'is for a single process' synth --profile-memory m --sigma-rel 0.1 run out.safetensors
refuses 2 'is for a single process' synth --device cuda --gpu-sums cublas --sigma-rel 0.1 run out.safetensors
refuses 3 'No such file' synth --sigma-rel 0.1 nothing out.safetensors
refuses 6 'exists' synth -q --sigma-rel 0.2 run full.safetensors

# other verbs are those of one process
team 2 verify -q full.safetensors >/dev/null || fail "verify fails"
[ "$(team 2 convert --sigma-rel 0.1 | wc -l)" = "$(posthoc-ema convert --sigma-rel 0.1 | wc -l)" ] || fail "convert prints twice"
exit $failed
