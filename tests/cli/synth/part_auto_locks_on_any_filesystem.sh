# The lock of a join is written and then linked into place; filesystems may have neither files without a name nor links.
[[ ${sanitize-} = *thread* ]] && echo "skipped: the thread sanitizer does not take the shim" >&2 && exit 77
"$phema" gen -q --count 2 --steps 300 --params 20k --tensors 3 --no-sync run >/dev/null
"$phema" synth -q --no-sync --sigma-rel 0.1 run one.safetensors >/dev/null
faults="env LD_PRELOAD=$(dirname "$phema")/tests/libfaults.so"
export ASAN_OPTIONS=detect_leaks=0:${ASAN_OPTIONS-}
mkdir here
for calls in open open,link open,linkat,link; do
    for i in 0 1 2; do
        RANK=$i WORLD_SIZE=3 $faults FAULT_CALLS=$calls FAULT_PATH=here FAULT_WITH=EOPNOTSUPP FAULT_AT=1 FAULT_STAYS=1 \
            "$phema" synth -q --no-sync --part auto --sigma-rel 0.1 run here/out.safetensors
    done
    cmp one.safetensors here/out.safetensors && echo "$calls: $(ls here)"
    rm here/*
done
