# Of two runs with the same output the second is refused, and the first makes the right output; in every form.
[[ $sanitize = *thread* ]] && echo "skipped: the thread sanitizer does not take the shim" >&2 && exit 77
faults="env LD_PRELOAD=$(dirname "$phema")/tests/libfaults.so"
export ASAN_OPTIONS=detect_leaks=0:${ASAN_OPTIONS-}
"$phema" gen -q --count 2 --params 100 --no-sync run >/dev/null
both() {
    $faults FAULT_CALLS=fsync FAULT_WITH=STOP FAULT_AT=1 "$phema" synth -q -j1 "$@" >/dev/null 2>first &
    pid=$!
    await_stop $pid
    "$phema" synth -q "$@" 2>&1
    echo "status $?"
    kill -CONT $pid
    wait $pid
    echo "the first: status $?"
    cat first
    rm -r out*
    ls
}
both --sigma-rel 0.1 run out.safetensors
both --sigma-rel 0.1 run out.safetensors.zst
both --sigma-rel 0.1 --shard-size 200 run out
both --sigma-rel 0.1 --into run/snapshot-0004096-0.100.safetensors run out.safetensors
both --sigma-rel 0.1,0.2 run out/
