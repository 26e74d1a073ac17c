# With --verify every form of output is read back before it gets its name. A byte that reads back differently
# ends the run and leaves nothing.
shim=$(dirname "$phema")/tests/libreading_shim.so
"$phema" gen -q --count 2 run >/dev/null
for f in run/*.safetensors; do echo "${f#run/} 0.25"; done >weights.txt
for out in out.safetensors out.safetensors.zst; do
    "$phema" synth -q --verify --weights weights.txt run $out
    env LD_PRELOAD="$shim" SHIM_COUNT=count "$phema" synth -q -f --io mmap --weights weights.txt run $out >/dev/null
    before=$(cat count)
    env LD_PRELOAD="$shim" SHIM_COUNT=count "$phema" synth -q -f --io mmap --verify --weights weights.txt run $out >/dev/null
    [ "$(cat count)" -gt "$before" ] && echo "$(($(cat count) - before)) reads more"
    last=$(cat count)
    rm $out
    found=0
    for at in $(seq $((before + 1)) "$last"); do
        env LD_PRELOAD="$shim" SHIM_WRONG_AT="$at" "$phema" synth -q --io mmap --verify \
            --weights weights.txt run $out 2>message >/dev/null
        [ $? = 6 ] && [ ! -e $out ] && found=$((found + 1))
    done
    [ $found = $((last - before)) ] && echo "each of them matters"
    cut -d ';' -f 1 message
done
"$phema" synth -q --verify --shard-size 10k --weights weights.txt run shards/
"$phema" synth -q --verify --weights "$fixtures/ema_pytorch/weights_0.10.txt" \
    "$fixtures/ema_pytorch/snapshots" copy.pt
for part in 1 2; do "$phema" synth -q --verify --part $part/2 --weights weights.txt run joined.safetensors; done
"$phema" join -q joined.safetensors
ls
