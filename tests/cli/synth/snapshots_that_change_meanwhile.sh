# Another program writes to a snapshot during the run: the average would mix the old snapshot with the new one.
# The run ends, names the snapshot, and leaves nothing.
shim=$(dirname "$phema")/tests/libreading_shim.so
"$phema" gen -q --count 4 --steps 40 --params 100k --tensors 3 --dtype f32 run >/dev/null
for f in run/*.safetensors; do echo "${f#run/} 0.125"; done >weights.txt
for changed in run/snapshot-0000010-0.050.safetensors run/snapshot-0000040-0.100.safetensors; do
    env SHIM_GROW_AT=8 SHIM_GROW=$changed SHIM_COUNT=count LD_PRELOAD="$shim" \
        "$phema" synth -q -j1 --io read --weights weights.txt run out.safetensors
    echo "  status $?, $([ "$(cat count)" -gt 8 ] && echo "while it was reading")"
    truncate -s -1 $changed
done
ls
