# The same command is started twice. A process that has looked for the output before the other team published it leaves
# no part behind, and parts that lie beside an output of the same command stop nothing.
[[ ${sanitize-} = *thread* ]] && echo "skipped: the thread sanitizer does not take the shim" >&2 && exit 77
faults="env --default-signal=TERM LD_PRELOAD=$(dirname "$phema")/tests/libfaults.so"
export ASAN_OPTIONS=detect_leaks=0:${ASAN_OPTIONS-}
"$phema" gen -q --count 2 --steps 300 --params 20k --tensors 3 --no-sync run >/dev/null
"$phema" synth -q --no-sync --sigma-rel 0.1,0.2 run whole/ >/dev/null
one=whole/phema-0000300-0.100.safetensors
rank() { RANK=$1 WORLD_SIZE=3 "$phema" synth -q --no-sync --part auto "${@:2}" || echo "rank $1: status $?"; }
team() { for i in 0 1 2; do rank $i "$@"; done; }
left() { echo "$1: $(ls -d out* | tr '\n' ' ')"; }
exec 2>&1

for markers in "1 2 3" "2" "1 3"; do
    for i in $markers; do "$phema" synth -q --no-sync --part "$i/3" --sigma-rel 0.1 run out.safetensors; done
    cp $one out.safetensors
    RANK=0 WORLD_SIZE=3 "$phema" synth --no-sync --part auto --sigma-rel 0.1 run out.safetensors 2>&1 | grep -E 'out.safe|posthoc'
    left "beside parts $markers"
    cmp $one out.safetensors && rm out*
done
echo "- directories, compressed outputs and several"
again() { # OUT ARGUMENTS...
    local out=$1
    shift
    "$phema" synth -q --no-sync "$@" run "one_$out" >/dev/null
    for i in 1 2 3; do "$phema" synth -q --no-sync --part $i/3 "$@" run "$out"; done
    cp -r "one_$out" "$out.copy"
    if [[ $out = */ ]]; then cp "one_$out"/* "$out"; else mv "$out.copy" "$out"; fi
    team "$@" run "$out" >/dev/null
    left "${out%/}"
    diff -r "one_$out" "$out" && rm -rf out* one_out*
}
again out_shards --sigma-rel 0.1 --shard-size 30k
again out.safetensors.zst --sigma-rel 0.1
mkdir out
cp whole/* out
for i in 1 2 3; do "$phema" synth -q --no-sync --force --part $i/3 --sigma-rel 0.1,0.2 run out/; done
team --sigma-rel 0.1,0.2 run out/
ls out
rm -r out

echo "- parts of another command stay, and an output that is not up to date is refused"
"$phema" synth -q --no-sync --part 1/3 --sigma-rel 0.1 run out.safetensors
cp whole/phema-0000300-0.200.safetensors out.safetensors
rank 1 --sigma-rel 0.1 run out.safetensors 2>&1 | sed "s/ on $(hostname)/ on HOST/"
RANK=2 WORLD_SIZE=3 "$phema" synth --no-sync --part auto --sigma-rel 0.2 run out.safetensors 2>&1 | grep -E 'out.safe|posthoc'
left "another command"
rm out*

late() { # CALL PATH MEANWHILE OPTIONS...: rank 1 stops there until the command MEANWHILE has run
    RANK=1 WORLD_SIZE=3 $faults FAULT_CALLS="$1" FAULT_PATH="$2" FAULT_WITH=STOP FAULT_AT=1 \
        "$phema" synth --no-sync -j1 --part auto -v "${@:4}" --sigma-rel 0.1 run out.safetensors >late 2>&1 &
    pid=$!
    await_stop $pid
    eval "$3"
    kill -CONT $pid
    { wait $pid; } 2>/dev/null
    echo "late: status $?"
    grep -E '(is up to date|^posthoc)' late
    left "late"
    cmp $one out.safetensors && rm out*
}
echo "- a process that begins its part when the output is published"
late openat .part-2-of-3 'team --sigma-rel 0.1 run out.safetensors'
echo "- the same with --force, over another output"
cp whole/phema-0000300-0.200.safetensors out.safetensors
late openat .part-2-of-3 'team --force --sigma-rel 0.1 run out.safetensors' --force
echo "- its files are published or removed while it writes"
late pwrite out.safetensors.partial "rm out.safetensors.partial && cp $one out.safetensors"
late pwrite out.safetensors.partial "rm out.safetensors.part-2-of-3 && cp $one out.safetensors"
