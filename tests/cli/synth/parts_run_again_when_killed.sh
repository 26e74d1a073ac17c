# A part that is stopped half-way keeps its place, and all other runs are refused. After a kill, join names the
# part, and a new run writes it again.
# shellcheck disable=SC2086 # options are several words
"$phema" gen -q --count 8 --steps 8 --params 3M --dtype f32 --no-sync run >/dev/null
"$phema" synth -q --sigma-rel 0.05:0.25:0.01 run whole/ >/dev/null
args="--no-sync --sigma-rel 0.05:0.25:0.01 run"
for i in 1 3; do "$phema" synth -q --part $i/3 $args sweep/; done
marker=sweep/phema-0000008-0.250.safetensors.part-2-of-3
stops() { # command: stops when it first writes to the last of the outputs
    exec env --default-signal=TERM LD_PRELOAD="$(dirname "$phema")/tests/libfaults.so" \
        FAULT_CALLS=pwrite FAULT_PATH=-0.250.safetensors.partial FAULT_WITH=STOP FAULT_AT=1 "$@"
}
stops "$phema" synth -q -j1 --part 2/3 $args sweep/ &
pid=$!
await_stop $pid
grep -q false $marker || echo "it was done before"
echo "- stopped"
"$phema" synth -q --part 2/3 $args sweep/
echo "status $?"
"$phema" synth -q $args sweep/
echo "status $?"
"$phema" join sweep/
echo "status $?"
echo "- killed"
{
    kill -KILL $pid
    wait $pid
} 2>/dev/null
echo "status $?"
"$phema" synth -q $args sweep/
echo "status $?"
"$phema" join sweep/
echo "status $?"
ls sweep | grep -c 'safetensors$'
echo "- run again"
"$phema" synth -q --part 2/3 $args sweep/
"$phema" join -q sweep/ | wc -l
diff -r whole sweep && echo "same"
echo "- interrupted: its markers go, the rest stays"
stops "$phema" synth -q -j1 --part 1/2 --force $args sweep/ &
pid=$!
await_stop $pid
kill -TERM $pid
kill -CONT $pid
wait $pid 2>/dev/null
status=$?
echo "status $status"
ls sweep | grep -c 'part-1-of-2'
ls sweep | grep -c 'partial$'
rm sweep/*.partial
diff -r whole sweep && echo "same"
