# A part that is stopped half-way keeps its place, and all other runs are refused. After a kill, join names the
# part, and a new run writes it again. The point of the stop does not matter, as long as the part is incomplete.
# shellcheck disable=SC2086 # options are several words
"$phema" gen -q --count 8 --steps 8 --params 3M --dtype f32 --no-sync run >/dev/null
"$phema" synth -q --sigma-rel 0.05:0.25:0.01 run whole/ >/dev/null
args="--no-sync --sigma-rel 0.05:0.25:0.01 run"
for i in 1 3; do "$phema" synth -q --part $i/3 $args sweep/; done
marker=sweep/phema-0000008-0.250.safetensors.part-2-of-3
for ((try = 0; try < 50; try++)); do
    "$phema" synth -q -j1 --part 2/3 $args sweep/ &
    pid=$!
    while ! grep -q false $marker 2>/dev/null && kill -0 $pid 2>/dev/null; do sleep 0.001; done
    kill -STOP $pid 2>/dev/null
    await_stop $pid
    grep -q false $marker && break # or it was done before
    kill -CONT $pid 2>/dev/null
    wait $pid
done
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
for ((try = 0; try < 50; try++)); do
    env --default-signal=TERM "$phema" synth -q -j1 --part 1/2 --force $args sweep/ &
    pid=$!
    marker=sweep/phema-0000008-0.250.safetensors.part-1-of-2
    while ! grep -q false $marker 2>/dev/null && kill -0 $pid 2>/dev/null; do sleep 0.001; done
    kill -TERM $pid 2>/dev/null
    wait $pid 2>/dev/null
    status=$?
    [ $status = 143 ] && break # or it was done before
    rm -f sweep/*.part-* sweep/*.partial
done
echo "status $status"
ls sweep | grep -c 'part-1-of-2'
ls sweep | grep -c 'partial$'
rm sweep/*.partial
diff -r whole sweep && echo "same"
