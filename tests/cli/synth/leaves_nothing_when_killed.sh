# The partial file exists only while the run lasts.
"$phema" gen -q --count 8 --steps 8 --params 6M --dtype f32 --no-sync run >/dev/null
for signal in INT TERM HUP; do
    # without this option a background job ignores INT
    env --default-signal=INT "$phema" synth -q -j1 --sigma-rel 0.01:0.28:0.01 run sweep/ &
    pid=$!
    for ((i = 0; i < 500; i++)); do
        ls sweep/*.partial >/dev/null 2>&1 && break
        sleep 0.01
    done
    ls sweep/*.partial >/dev/null 2>&1 && echo "writing"
    kill -$signal $pid 2>/dev/null
    wait $pid 2>/dev/null
    echo "status $?"
    ls -d sweep 2>/dev/null
done
true
