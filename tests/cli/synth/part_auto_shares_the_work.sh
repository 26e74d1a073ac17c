# Processes of a launcher make one part each; the last one joins. The bytes are those of one process.
launch() { # N ARGUMENTS...: N processes at once, as torchrun starts them
    local n=$1 pids=() i failed=0
    shift
    for ((i = 0; i < n; i++)); do
        RANK=$i WORLD_SIZE=$n "$phema" synth -q --no-sync --part auto "$@" &
        pids+=($!)
    done
    for i in "${pids[@]}"; do wait "$i" || failed=1; done
    return $failed
}
"$phema" gen -q --count 5 --steps 300 --params 300k --tensors 9 --dtype f16 --no-sync run >/dev/null
"$phema" synth -q --no-sync --sigma-rel 0.03,0.15,0.25 run whole/ >/dev/null
echo "- one process prints the paths, and nothing but the outputs is left"
for n in 1 2 3 7; do
    launch $n --sigma-rel 0.03,0.15,0.25 run by$n/ | sed "s|by$n/||"
    diff -r whole by$n && echo "$n processes: same"
done
echo "- the same command again"
launch 3 --sigma-rel 0.03,0.15,0.25 run by3/ && diff -r whole by3 && echo "same"
echo "- over another output"
"$phema" synth -q --no-sync --sigma-rel 0.2 run out.safetensors
launch 2 --sigma-rel 0.15 run out.safetensors 2>&1 | grep -c 'exists, but is not up to date (--force replaces it)'
launch 2 --force --sigma-rel 0.15 run out.safetensors
cmp whole/phema-0000300-0.150.safetensors out.safetensors && echo "same"
echo "- directories and a conversion"
"$phema" synth -q --no-sync --sigma-rel 0.1 --shard-size 100k run shards >/dev/null
launch 3 --sigma-rel 0.1 --shard-size 100k run shards3
diff -r shards shards3 && echo "same"
"$phema" synth -q --no-sync --sigma-rel 0.1 --ranks 2 run ranks >/dev/null
launch 3 --sigma-rel 0.1 --ranks 2 run ranks3
diff -r ranks ranks3 && echo "same"
launch 3 --convert run/snapshot-0000300-0.050.safetensors converted.safetensors
"$phema" synth -q --convert run/snapshot-0000300-0.050.safetensors one.safetensors
cmp one.safetensors converted.safetensors && echo "same"
ls
