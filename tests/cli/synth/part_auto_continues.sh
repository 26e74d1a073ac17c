# A process that fails or is killed leaves the others' parts. The same command again makes what is missing.
"$phema" gen -q --count 3 --params 50k --no-sync run >/dev/null
"$phema" synth -q --no-sync --sigma-rel 0.1,0.2 run whole/ >/dev/null
rank() { RANK=$1 WORLD_SIZE=3 "$phema" synth -v --no-sync --part auto --sigma-rel 0.1,0.2 run "${@:2}" 2>&1 |
    grep -oE -e '^(part|wrote part) .*of 2 (outputs|averages)' -e '^posthoc-ema: .*' -e '^sweep.*' -e '^the last.*' | sed "s/ on $(hostname)/ on HOST/"; }
exec 2>&1
echo "- two of three"
rank 0 sweep/
rank 2 sweep/
ls sweep
echo "- one of them fails"
mv run away
rank 1 sweep/
mv away run
echo "- the same command again"
for i in 0 1 2; do rank $i sweep/; done
diff -r whole sweep && echo "same"
echo "- one output of a part is missing"
for i in 0 1; do rank $i half/ >/dev/null; done
rm half/phema-0004096-0.200.safetensors.part-1-of-3
rank 2 half/
rank 0 half/ | sed 's/half/sweep/'
diff -r whole half && echo "same"
echo "- a join that was killed"
faults="env LD_PRELOAD=$(dirname "$phema")/tests/libfaults.so"
for at in rename,renameat2:1 rename,renameat2:2 unlink:1 unlink:2 unlink:4 unlink:6; do
    rm -rf sweep
    for i in 0 1 2; do
        { RANK=$i WORLD_SIZE=3 $faults FAULT_CALLS="${at%:*}" FAULT_WITH=KILL FAULT_AT="${at#*:}" "$phema" synth -q --no-sync --part auto --sigma-rel 0.1,0.2 run sweep/ >/dev/null; } 2>/dev/null
    done
    echo "killed: $(ls sweep | grep -c join) lock"
    for i in 2 0 1; do RANK=$i WORLD_SIZE=3 "$phema" synth -q --no-sync --part auto --sigma-rel 0.1,0.2 run sweep/; done
    diff -r whole sweep && echo "same"
done
echo "- the same of a compressed output"
"$phema" gen -q --count 1 --steps 8 --params 4M --tensors 4 --no-sync large >/dev/null
"$phema" synth -q --no-sync --sigma-rel 0.07 large one.safetensors.zst >/dev/null
for at in pwrite:1 pwrite:9 rename,renameat2:1 rename,renameat2:2 unlink:1 unlink:3 unlink:4; do
    for i in 0 1 2; do
        { RANK=$i WORLD_SIZE=3 $faults FAULT_CALLS="${at%:*}" FAULT_WITH=KILL FAULT_AT="${at#*:}" "$phema" synth -q -j1 --no-sync --part auto --sigma-rel 0.07 large out.safetensors.zst >/dev/null; } 2>/dev/null
    done
    for i in 2 0 1; do RANK=$i WORLD_SIZE=3 "$phema" synth -q --no-sync --part auto --sigma-rel 0.07 large out.safetensors.zst >/dev/null; done
    cmp one.safetensors.zst out.safetensors.zst && echo "killed before $(cut -d, -f1 <<<"${at%:*}") ${at#*:}: $(ls -d out*)"
    rm out*
done
