# In every form of output, partial files exist only while the run lasts. They are gone after a signal or lack of
# space, and existing files stay unchanged.
"$phema" gen -q --count 8 --steps 8 --params 6M --dtype f32 --no-sync run >/dev/null
newest=run/snapshot-0000008-0.100.safetensors
mkdir old && echo kept >old/model.safetensors
echo kept >old.safetensors.zst
cp $newest old.safetensors && echo kept >old.safetensors.json

attempt() { # OUT, options: killed when the partial output is there
    rm -rf new* && mkdir new
    env --default-signal=TERM LD_PRELOAD="$(dirname "$phema")/tests/libfaults.so" FAULT_CALLS=pwrite FAULT_PATH=new/ \
        FAULT_WITH=STOP FAULT_AT=40 "$phema" synth -q -j1 --sigma-rel 0.01:0.28:0.01 --force "${@:2}" run "$1" &
    pid=$!
    await_stop $pid
    ls -d new/*.partial >/dev/null 2>&1 && echo "writing"
    kill -TERM $pid
    kill -CONT $pid
    wait $pid 2>/dev/null
    echo "status $?"
    ls -A new
}
echo "- compressed"
attempt 'new/{sigma}.safetensors.zst'
echo "- sharded"
attempt 'new/{sigma}' --shard-size 4MiB
echo "- copies"
attempt 'new/{sigma}.safetensors' --into $newest

limited() { # no file may grow beyond 2 MiB, the tensors are 24
    (
        ulimit -f 2048
        "$phema" synth -q -j2 --no-sync --sigma-rel 0.05 --force "$@" 2>&1
        echo "status $?"
    )
    ls -A new
}
rm -rf new && mkdir new
echo "- no space: compressed, sharded, a copy; new and over what is there"
limited run new/out.safetensors.zst
limited --shard-size 4MiB run new/out
limited --into $newest run new/out.safetensors
limited run old.safetensors.zst
limited --shard-size 4MiB run old
limited --into $newest run old.safetensors
cat old/model.safetensors old.safetensors.zst old.safetensors.json
cmp $newest old.safetensors
echo "- for a later shard, when the first is there"
(
    ulimit -f 3500 # KiB; the first shard has 3.35 MiB, another one more
    "$phema" synth -q --no-sync --sigma-rel 0.05 --shard-size 4MiB run new/out 2>&1
    echo "status $?"
)
ls -A new
ls -A
