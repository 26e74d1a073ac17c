# A signal may come while the run removes the directory that was replaced. The program ends after the removal:
# the new directory is there, and nothing of the old one remains next to it.
[[ $sanitize = *thread* ]] && echo "skipped: the thread sanitizer does not take the shim" >&2 && exit 77
export ASAN_OPTIONS=detect_leaks=0:${ASAN_OPTIONS-}
"$phema" gen -q --count 2 --steps 20 --params 20k --tensors 6 --no-sync run >/dev/null
"$phema" synth -q --no-sync --shard-size 20k --sigma-rel 0.2 run old >/dev/null
"$phema" synth -q --no-sync --shard-size 20k --sigma-rel 0.1 run new >/dev/null
for call in renameat2 fdopendir unlinkat rmdir; do
    for sync in --no-sync ''; do
        rm -rf out && mkdir out && cp -r old out/o
        for at in 1 2 3; do
            { env --default-signal=TERM LD_PRELOAD="$(dirname "$phema")/tests/libfaults.so" FAULT_CALLS=$call FAULT_AT=$at \
                FAULT_WITH=TERM "$phema" synth -q $sync -f --shard-size 20k --sigma-rel 0.1 run out/o >/dev/null; } 2>/dev/null
            [ $? = 143 ] || continue
            echo "$call ${sync:-sync}: $(ls out | tr '\n' ' ')"
            diff -r old out/o >/dev/null || diff -r new out/o
            break
        done
    done
done
