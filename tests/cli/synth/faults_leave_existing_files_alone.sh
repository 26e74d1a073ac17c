# Regressions: these faults once lost a file or left one behind. Each must keep the old output or give all of the new.
# shellcheck disable=SC2086 # options are several words
[[ $sanitize = *thread* ]] && echo "skipped: the thread sanitizer does not take the shim" >&2 && exit 77
faults="env LD_PRELOAD=$(dirname "$phema")/tests/libfaults.so"
export ASAN_OPTIONS=detect_leaks=0:${ASAN_OPTIONS-}
exec 2>&1
"$phema" gen -q --count 2 --params 100 --no-sync run >/dev/null
attempt() { # FAULT_..., --, arguments of synth: status and what is there
    local fault=()
    while [ "$1" != -- ]; do fault+=("FAULT_$1"); shift; done
    shift
    $faults "${fault[@]}" "$phema" synth -q -j1 "$@" >/dev/null
    echo "status $?: $(ls | tr '\n' ' ')"
}
copy="--into run/snapshot-0004096-0.100.safetensors run out.safetensors"

echo "- a lock that fails: the partial file that was made for it goes"
attempt CALLS=flock WITH=EIO AT=1 -- --sigma-rel 0.1 run out.safetensors
attempt CALLS=flock WITH=EIO AT=1 -- --sigma-rel 0.1 --shard-size 200 run out/
echo "- interrupted calls are made again"
for call in ftruncate fallocate fsync; do attempt CALLS=$call WITH=EINTR AT=1 -- -f --sigma-rel 0.1 run out.safetensors; done
rm out.safetensors
echo "- what was handed to the disk ahead of time and did not get there, which fsync does not say any more"
attempt CALLS=sync_file_range WITH=EIO AT=1 -- --drop-cache --sigma-rel 0.1 run out.safetensors
echo "- a copy that is in place keeps its provenance, though its directory cannot be synced"
attempt CALLS=fsync WITH=EIO AT=4 -- --sigma-rel 0.1 $copy
cmp -s out.safetensors run/snapshot-0004096-0.100.safetensors || echo "of an average"
echo "- and an old one its own, when the new one cannot come"
cp out.safetensors.json old.json && cp out.safetensors old
for n in "1 STAYS=1" 2; do attempt CALLS=rename,renameat2 WITH=EACCES AT=$n -- -f --sigma-rel 0.2 $copy; done
cmp old.json out.safetensors.json && cmp old out.safetensors && echo "as before"
rm old* out*
echo "- an old directory comes back when the new one cannot be made durable"
"$phema" synth -q --shard-size 200 --sigma-rel 0.2 run out/ >/dev/null && cp -r out old
n=$($faults FAULT_CALLS=fsync FAULT_TOLD=told "$phema" synth -q -j1 -f --shard-size 200 --sigma-rel 0.1 run out2/ >/dev/null && sed 's/calls //' told)
rm -r out2 told
attempt CALLS=fsync WITH=EIO AT=$n -- -f --shard-size 200 --sigma-rel 0.1 run out/
diff -r old out && echo "as before"
