# A kill comes before a sync: of a score, a candidate, or the journal itself. The next run ends with the same
# scores, and leaves nothing but scores.csv and the best candidate.
[[ $sanitize = *thread* ]] && echo "skipped: the thread sanitizer does not take the shim" >&2 && exit 77
faults="env LD_PRELOAD=$(dirname "$phema")/tests/libfaults.so"
export ASAN_OPTIONS=detect_leaks=0:${ASAN_OPTIONS-}
"$phema" gen -q --count 3 --params 100 run >/dev/null
search() { "$@" search -q --sigma-rel 0.05:0.2 --coarse 4 --batch 2 --tolerance 0.02 --score-regex '(0\.[0-9]+)\.safetensors$' \
    --exec "sh -c 'echo \"\$1\" | sed s/newest/0.9/' sh {}" run out; }
search "$phema"
grep '^0' out/scores.csv | cut -d, -f1-3 >wanted
for at in 1 2 4 6 8 10 12 14 16 18 20 22; do
    rm -r out
    # shellcheck disable=SC2086 # words
    { search $faults FAULT_CALLS=fsync FAULT_WITH=KILL FAULT_AT=$at "$phema" >/dev/null; } 2>/dev/null
    echo "status $?"
    search "$phema" >/dev/null
    grep '^0' out/scores.csv | cut -d, -f1-3 | cmp - wanted
    ls out
done 2>&1 | sort | uniq -c | sed 's/^ *//'
