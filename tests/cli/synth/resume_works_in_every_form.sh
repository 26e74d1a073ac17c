# --resume continues a killed run in every form of output, and makes the bytes of an undisturbed run. Writes are
# slow here, so that at the kill the journal holds some tiles and lacks others.
[[ $sanitize = *thread* ]] && echo "skipped: the thread sanitizer does not take the shim" >&2 && exit 77
faults="env LD_PRELOAD=$(dirname "$phema")/tests/libfaults.so FAULT_CALLS=pwrite FAULT_PATH=.partial "
export ASAN_OPTIONS=detect_leaks=0:${ASAN_OPTIONS-}
"$phema" gen -q --count 3 --steps 30 --params 1M --tensors 8 --dtype f32 --no-sync run >/dev/null
newest=run/snapshot-0000030-0.100.safetensors
mkdir packed
for file in run/*.safetensors; do
    "$phema" synth -q --no-sync --convert "$file" "packed/$(basename "$file").zst" >/dev/null
done
stop() { # signal, number of the write, arguments: half a second after the start, in any case
    { $faults FAULT_PAUSE=$((1200 / $2)) FAULT_WITH="$1" FAULT_AT="$2" "$phema" synth -q --resume --no-sync -j2 "${@:3}" >/dev/null; } 2>/dev/null
    echo "status $?: $(ls new | tr '\n' ' ')"
}
go_on() { # arguments: whether some of the way was spared, and whether the bytes are right
    "$phema" synth --resume --no-sync --json "${@:1}" 2>err >json || cat err
    grep -o 'resumed [0-9]* output' err
    awk '/read_bytes/ { gsub(/[^0-9]/, ""); print ($0 + 0 > 0 && $0 + 0 < all) ? "read less" : "read " $0 }' "all=${all:-23000000}" json
    diff -rq whole new && ls new && rm -r new/*
}
whole() { rm -rf whole; mkdir -p whole new; "$phema" synth -q --no-sync "$@" >/dev/null; }
form() { # name, OUT, arguments before it
    echo "- $1"
    whole "${@:3}" "whole/$2"
    stop KILL 22 "${@:3}" "new/$2"
    go_on "${@:3}" "new/$2"
}
form "a new file" out.safetensors --sigma-rel 0.1 run
form "compressed" out.safetensors.zst --sigma-rel 0.1 run
form "shards" out --shard-size 1M --sigma-rel 0.1 run
form "a copy" out.safetensors --into "$newest" --sigma-rel 0.1 run
form "from compressed snapshots" out.safetensors --sigma-rel 0.1 packed
form "with another dtype" out.safetensors --dtype bf16 --sigma-rel 0.1 run
form "several" many/ --sigma-rel 0.1,0.2 run
all=3900000 form "another format" out.safetensors.zst --convert "$newest"
echo "- twice, and by a signal"
whole --sigma-rel 0.1 run whole/out.safetensors
stop KILL 14 --sigma-rel 0.1 run new/out.safetensors
stop TERM 9 --sigma-rel 0.1 run new/out.safetensors
go_on --sigma-rel 0.1 run new/out.safetensors
echo "- in other tiles, read in another way, by more threads, and read back"
stop KILL 11 --io mmap --sigma-rel 0.1 run new/out.safetensors
go_on --io read -j3 --verify --sigma-rel 0.1 run new/out.safetensors
echo "- for want of space: what is done stays, and is said to"
$faults FAULT_PAUSE=50 FAULT_WITH=ENOSPC FAULT_AT=22 FAULT_STAYS=1 "$phema" synth -q --resume --no-sync -j2 --sigma-rel 0.1 run new/out.safetensors 2>&1
echo "status $?: $(ls new | tr '\n' ' ')"
go_on --sigma-rel 0.1 run new/out.safetensors
echo "- a part"
whole --sigma-rel 0.1 run whole/out.safetensors
stop KILL 14 --part 2/2 --sigma-rel 0.1 run new/out.safetensors
"$phema" synth --resume --no-sync --part 2/2 --sigma-rel 0.1 run new/out.safetensors 2>&1 | grep -o 'resumed [0-9]* output'
"$phema" synth -q --resume --no-sync --part 1/2 --sigma-rel 0.1 run new/out.safetensors
"$phema" join -q new/out.safetensors
diff -rq whole new && ls new && rm -r new/*
echo "- nothing to go on with: a run like any other"
"$phema" synth -q --resume --no-sync --sigma-rel 0.1 run new/out.safetensors
diff -rq whole new && ls new
echo "- and what is whole is left alone"
"$phema" synth --resume --no-sync --sigma-rel 0.1 run new/out.safetensors 2>&1 | grep 'up to date'
