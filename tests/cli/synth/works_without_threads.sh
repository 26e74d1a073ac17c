# A run that can start no thread, or only one, makes the same bytes alone. The kernel forbids all threads
# (tests/support/forbid_threads.c); a shim forbids all after the first.
[[ $sanitize = *thread* ]] && echo "the thread sanitizer has a thread of its own" >&2 && exit 77
alone=$(dirname "$phema")/tests/without_threads
$alone true || exit 77
one="env LD_PRELOAD=$(dirname "$phema")/tests/libfaults.so FAULT_CALLS=pthread_create FAULT_WITH=EAGAIN FAULT_AT=2 FAULT_STAYS=1"
"$phema" gen -q --params 60000 --no-sync run >/dev/null
synth() { # what stands before the program
    mkdir out
    (cd out && "$@" "$phema" synth -q --no-sync --threads 4 --sigma-rel 0.1 "${options[@]}" ../run "$out" >/dev/null)
}
for out in file.safetensors file.safetensors.zst shards/ '{sigma}.safetensors'; do
    options=()
    [ "$out" = shards/ ] && options=(--shard-size 40K)
    synth && mv out many
    for way in "$alone" "$one"; do
        # shellcheck disable=SC2086 # a command of several words
        synth $way
        echo "$out: status $?"
        diff -r many out && echo "the same bytes"
        rm -r out
    done
    rm -r many
done
(cd run && $alone "$phema" synth -q --no-sync --profile-memory ../memory.json --sigma-rel 0.1 . ../watched.safetensors >/dev/null) &&
    grep -c '"stage":"accumulate"' memory.json
