# The partial file exists only while the run lasts.
"$phema" gen -q --count 8 --steps 8 --params 6M --dtype f32 --no-sync run >/dev/null
for signal in INT TERM HUP; do
    # without this option a background job ignores INT
    env --default-signal=INT LD_PRELOAD="$(dirname "$phema")/tests/libfaults.so" FAULT_CALLS=pwrite FAULT_PATH=.partial \
        FAULT_WITH=STOP FAULT_AT=40 "$phema" synth -q -j1 --sigma-rel 0.01:0.28:0.01 run sweep/ &
    pid=$!
    await_stop $pid
    ls sweep/*.partial >/dev/null 2>&1 && echo "writing"
    kill -$signal $pid
    kill -CONT $pid
    wait $pid 2>/dev/null
    echo "status $?"
    ls -d sweep 2>/dev/null
done
true
