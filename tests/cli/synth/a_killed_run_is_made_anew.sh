# A run recognizes the leftovers of a killed run by their names and by the missing lock. The run reports
# them, takes them over, and leaves nothing of them.
# shellcheck disable=SC2086 # options are several words
[[ $sanitize = *thread* ]] && echo "skipped: the thread sanitizer does not take the shim" >&2 && exit 77
faults="env LD_PRELOAD=$(dirname "$phema")/tests/libfaults.so"
export ASAN_OPTIONS=detect_leaks=0:${ASAN_OPTIONS-}
exec 2>&1
"$phema" gen -q --count 2 --params 100 --no-sync run >/dev/null
again() { # calls, number, arguments: killed before that call, run again
    { $faults FAULT_CALLS="$1" FAULT_WITH=KILL FAULT_AT="$2" "$phema" synth -q -j1 "${@:3}" >/dev/null; } 2>/dev/null
    echo "status $?: $(ls new | tr '\n' ' ')"
    "$phema" synth "${@:3}" 2>&1 >/dev/null | grep 'killed'
    "$phema" diff "$PWD/whole/$(basename "${@: -1}")" "${@: -1}" | tail -n 1
    ls new
    rm -r new/*
}
mkdir new whole
copy="--into run/snapshot-0004096-0.100.safetensors"
"$phema" synth -q --sigma-rel 0.1 run whole/out.safetensors >/dev/null
"$phema" synth -q --sigma-rel 0.1 run whole/out.safetensors.zst >/dev/null
"$phema" synth -q --sigma-rel 0.1 --shard-size 200 run whole/out >/dev/null
echo "- a new file, before it is renamed"
again fsync 1 --sigma-rel 0.1 run "$PWD/new/out.safetensors"
echo "- compressed"
again fsync 1 --sigma-rel 0.1 run "$PWD/new/out.safetensors.zst"
echo "- a directory"
again fsync 2 --sigma-rel 0.1 --shard-size 200 run "$PWD/new/out"
echo "- a copy, behind its provenance: that is replaced, which it is not where it stands alone"
again rename,renameat2 2 --sigma-rel 0.1 $copy run "$PWD/new/out.safetensors"
echo '{"mine": 1}' >new/out.safetensors.json
touch new/out.safetensors.partial
"$phema" synth -q --sigma-rel 0.1 $copy run new/out.safetensors
echo "status $?"
rm new/*
echo "- two names of one file, where a link stands for a rename: what is published is not emptied"
"$phema" synth -q --sigma-rel 0.2 run new/out.safetensors >/dev/null
cp new/out.safetensors old
ln new/out.safetensors new/out.safetensors.partial
{ $faults FAULT_CALLS=fsync FAULT_WITH=KILL FAULT_AT=1 "$phema" synth -q -f --sigma-rel 0.1 run new/out.safetensors; } 2>/dev/null
cmp old new/out.safetensors && echo "as before"
