# Allocations that fail inside libraries, or while text is composed, are reported as lack of memory (status 7).
# They must not appear as an error of the expression to compile or of the JSON to read, nor end the program by
# a signal.
[[ $sanitize = *thread* ]] && echo "skipped: the thread sanitizer does not take the shim" >&2 && exit 77
faults="env LD_PRELOAD=$(dirname "$phema")/tests/libfaults.so FAULT_CALLS=malloc,calloc,realloc,reallocarray,aligned_alloc FAULT_WITH=ENOMEM FAULT_TOLD=told"
export ASAN_OPTIONS=detect_leaks=0:${ASAN_OPTIONS-}
"$phema" gen -q --count 2 --params 100 --no-sync run >/dev/null
every() { # arguments: each allocation in turn, until there are no more
    local n status
    for ((n = 1; n < 3000; n++)); do
        rm -rf out
        $faults FAULT_AT=$n "$phema" "$@" >answer 2>err
        status=$?
        grep -q calls told && break
        grep -q 'CHECK failed' err && continue # the sanitizer itself had no memory
        if [ $status = 0 ]; then # it was not needed
            [ "$1" = synth ] || cmp -s wanted answer || echo "$1, allocation $n: another answer"
            continue
        fi
        [ $status = 7 ] && [ "$(grep -c '^posthoc-ema: ' err)" = 1 ] || echo "$1, allocation $n: status $status: $(cat err)"
    done
    echo "$1: $([ $n -gt 100 ] && [ $n -lt 3000 ] && echo "every one")"
}
every synth -q -j1 --no-sync --sigma-rel 0.1,0.2 run out/
"$phema" weights -q --json --sigma-rel 0.1 run >wanted
every weights -q --json --sigma-rel 0.1 run
