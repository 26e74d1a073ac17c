# The lock of a join that another process has left stops nobody who has nothing to join. Others say for whom they wait.
"$phema" gen -q --count 2 --steps 300 --params 20k --tensors 3 --no-sync run >/dev/null
"$phema" synth -q --no-sync --sigma-rel 0.1 run one.safetensors >/dev/null
rank() { RANK=$1 WORLD_SIZE=3 timeout 60 "$phema" synth --no-sync --part auto --sigma-rel 0.1 run out.safetensors; }
elsewhere() { echo "01234567-89ab-cdef-0123-456789abcdef 4026531836 4711 node17" >out.safetensors.join; }
exec 2>&1
echo "- parts are missing: nobody waits"
elsewhere
for i in 0 2; do rank $i 2>&1 | grep -E '^(the last|posthoc)'; done
cat out.safetensors.join
echo "- all are done: the last one names the process, though it prints nothing else"
rank 1 >said 2>&1 &
until grep -qs waiting said || ! kill -0 $! 2>/dev/null; do sleep 0.05; done
rm out.safetensors.join
wait $!
echo "status $?"
cat said
cmp one.safetensors out.safetensors
echo "- a part beside an output, which is to be removed when the lock is free"
"$phema" synth -q --no-sync --force --part 2/3 --sigma-rel 0.1 run out.safetensors
elsewhere
rm said # or the wait below could find the line of the process above
rank 0 >said 2>&1 &
until grep -qs waiting said || ! kill -0 $! 2>/dev/null; do sleep 0.05; done
rm out.safetensors.join
wait $!
echo "status $?: $(echo out*)"
grep -E 'waiting|removed' said
echo "- nothing is left to join"
elsewhere
rank 1
echo "status $?: $(echo out*)"
rm out*
echo "- a lock that names nobody: its process was killed, or the disk has lost what it wrote"
for text in '' '\0\0\0\0'; do
    for i in 0 1; do rank $i >/dev/null 2>&1; done
    printf '%b' "$text" >out.safetensors.join
    touch -d '2 minutes ago' out.safetensors.join
    rank 2 >/dev/null 2>&1
    cmp one.safetensors out.safetensors && echo "joined: $(echo out*)"
    rm out*
done
