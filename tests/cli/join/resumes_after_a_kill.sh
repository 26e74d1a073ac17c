# join is killed after the rename and runs again. It recognises its published output by the inode number,
# and finishes. It does not mistake a directory that it has replaced for the parts.
[[ $sanitize = *thread* ]] && echo "skipped: the thread sanitizer does not take the shim" >&2 && exit 77
faults="env LD_PRELOAD=$(dirname "$phema")/tests/libfaults.so"
export ASAN_OPTIONS=detect_leaks=0:${ASAN_OPTIONS-}
exec 2>&1
"$phema" gen -q --count 2 --params 100 --no-sync run >/dev/null
"$phema" synth -q --sigma-rel 0.1 run whole.safetensors >/dev/null
"$phema" synth -q --sigma-rel 0.1 --shard-size 200 run whole >/dev/null
killed() { { $faults FAULT_CALLS="$1" FAULT_WITH=KILL FAULT_AT="$2" "$phema" join -q "${@:3}" >/dev/null; } 2>/dev/null; }
for call in rename,renameat2 unlink; do
    for n in 1 2; do
        [ $call$n = rename,renameat22 ] && continue
        for i in 1 2; do "$phema" synth -q --part $i/2 --sigma-rel 0.1 run out.safetensors; done
        killed $call $n out.safetensors
        echo "killed before $call $n: $(ls -d out* | tr "\n" " ")"
        "$phema" join -q out.safetensors >/dev/null
        cmp whole.safetensors out.safetensors && echo "joined: $(ls -d out*)"
        rm out*
    done
done
echo "- a compressed output, whose frames are put together before the rename"
"$phema" gen -q --count 1 --steps 8 --params 4M --tensors 4 --no-sync large >/dev/null
"$phema" synth -q --no-sync --sigma-rel 0.07 large whole.safetensors.zst >/dev/null
for at in pwrite:1 pwrite:3 ftruncate:1 rename,renameat2:1 unlink:1 unlink:2 unlink:3 unlink:4; do
    for i in 1 2; do "$phema" synth -q --no-sync --part $i/2 --sigma-rel 0.07 large out.safetensors.zst; done
    killed "${at%:*}" "${at#*:}" out.safetensors.zst
    echo "killed before $(cut -d, -f1 <<<"${at%:*}") ${at#*:}: $(ls -d out* | tr "\n" " ")"
    "$phema" join -q --no-sync out.safetensors.zst >/dev/null
    cmp whole.safetensors.zst out.safetensors.zst && echo "joined: $(ls -d out*)"
    rm out*
done
echo "- the disk is full: the parts stay, and PATH.partial gives back its space"
for i in 1 2; do "$phema" synth -q --no-sync --part $i/2 --sigma-rel 0.07 large out.safetensors.zst; done
for n in 1 2 4; do
    $faults FAULT_CALLS=pwrite FAULT_WITH=ENOSPC FAULT_AT=$n FAULT_STAYS=1 "$phema" join -q --no-sync out.safetensors.zst
    echo "status $?: $(stat -c '%n %s' out.safetensors.zst.partial)"
done
"$phema" join -q --no-sync out.safetensors.zst
cmp whole.safetensors.zst out.safetensors.zst && rm out*
echo "- a directory in the place of another one with the same names"
for n in 1 2; do
    "$phema" synth -q --sigma-rel 0.2 --shard-size 200 run out >/dev/null
    for i in 1 2; do "$phema" synth -q --part $i/2 --sigma-rel 0.1 --shard-size 200 --force run out; done
    killed unlinkat,rmdir $n -f out
    echo "killed: $(ls -d out* | tr "\n" " ")"
    "$phema" join -q -f out >/dev/null
    diff -r whole out && echo "joined: $(ls -d out*)"
    rm -r out*
done
echo "- no memory to read what parts have left: they are not said to be unfinished"
both() { rm -f out*; for i in 1 2; do "$phema" synth -q --part $i/2 --sigma-rel 0.1 run out.safetensors; done; }
both
for ((n = 1; n < 1000; n++)); do
    $faults FAULT_CALLS=malloc,calloc,realloc FAULT_WITH=ENOMEM FAULT_AT=$n FAULT_TOLD=told "$phema" join -q out.safetensors >/dev/null 2>err
    status=$?
    grep -q calls told && break
    # "CHECK failed" means that the sanitizer itself had no memory.
    [ $status = 7 ] || [ $status = 0 ] || grep -q 'CHECK failed' err || echo "allocation $n: status $status: $(cat err)"
    [ -e out.safetensors.partial ] || both
done
[ $n -gt 50 ] && [ "$status" = 0 ] && echo "each allocation"
echo "- short and interrupted reads of it"
both
$faults FAULT_CALLS=pread FAULT_WITH=short FAULT_AT=1 FAULT_STAYS=1 "$phema" join -q out.safetensors
both
$faults FAULT_CALLS=pread FAULT_WITH=EINTR FAULT_AT=1 "$phema" join -q out.safetensors
