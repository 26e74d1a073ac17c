"$phema" gen -q --count 4 --no-sync run >/dev/null
"$phema" synth -q --no-sync --sigma-rel 0.1 --shard-size 12.5KiB run decimal
"$phema" synth -q --no-sync --sigma-rel 0.1 --shard-size 12800 run bytes
ls bytes decimal | grep -c '^model-.*safetensors$'
"$phema" diff -q bytes decimal || echo other shards
# the size in a message can be used verbatim as the limit, for one requirement after another
limit=100.5k
until "$phema" synth -q -j1 --no-sync --sigma-rel 0.1 --max-ram "$limit" run out.safetensors 2>said; do
    next=$(sed -nE 's/.*at least ([0-9.]+) ([KMG]iB) are needed.*/\1\2/p' said)
    if [ -z "$next" ] || [ "$next" = "$limit" ]; then
        cat said
        break
    fi
    limit=$next
done
for size in 1.5.2 .5 0.5B 8192TiB -1.5G 1.5Gb; do
    "$phema" synth -q --sigma-rel 0.1 --max-ram $size run out.safetensors
    echo $?
done
