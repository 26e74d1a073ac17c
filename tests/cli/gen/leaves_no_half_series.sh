# If gen cannot publish a whole series, gen removes the files already published. The same holds when only
# the directory could not be made durable. A harmless failure leaves the whole series.
[[ $sanitize = *thread* ]] && echo "skipped: the thread sanitizer does not take the shim" >&2 && exit 77
faults="env LD_PRELOAD=$(dirname "$phema")/tests/libfaults.so"
export ASAN_OPTIONS=detect_leaks=0:${ASAN_OPTIONS-}
for ((n = 1; n < 1000; n++)); do
    rm -rf run
    $faults FAULT_CALLS=fsync,rename,renameat2,open FAULT_PATH=run FAULT_WITH=EIO FAULT_AT=$n FAULT_TOLD=told "$phema" gen -q --count 2 --params 100 run >/dev/null 2>err
    status=$?
    grep -q calls told && break
    [ $status = 0 ] && [ "$(find run -type f | wc -l)" = 5 ] && continue
    [ $status = 6 ] || echo "call $n: status $status: $(cat err)"
    find run 2>/dev/null
done
[ $n -gt 20 ] && echo "each call: then status $status, $(find run -type f | wc -l) files"
