# With --rule each tensor equals, byte for byte, that of a run with the rule's width alone. Threads, memory,
# parts, ways of reading and forms do not matter. Copies are those of the newest snapshot.
set -e
"$phema" gen -q --count 5 --steps 500 --params 300k --tensors 40 --dtype f16 --no-sync run >/dev/null
synth() { "$phema" synth -q --no-sync "$@" >/dev/null; }
same() { # file, file, expression of the tensors to compare
    "$phema" synth -q --no-sync --force --convert --include "$3" "$1" a.safetensors >/dev/null
    "$phema" synth -q --no-sync --force --convert --include "$3" "$2" b.safetensors >/dev/null
    "$phema" diff -q a.safetensors b.safetensors >/dev/null || echo "$1 $2 $3 differ"
}
first='blocks\.[0-3]\.weight' # follows the first rule, though the second matches as well
second='blocks\..*weight'
third='blocks\.7\.bias'
rules=(--rule "$first=0.05" --rule "$second=0.2" --rule "$third=copy")
rest='^(?!blocks\..*weight|blocks\.7\.bias)'

for sigma in 0.05 0.1 0.15 0.2; do synth --sigma-rel $sigma run plain-$sigma.safetensors; done
check() { # outputs: of 0.1 and 0.15
    same "$1" plain-0.05.safetensors "$first"
    same "$1" plain-0.2.safetensors '^(?!blocks\.[0-3]\.)blocks\..*weight'
    same "$1" run/snapshot-0000500-0.100.safetensors "$third"
    same "$1" plain-0.1.safetensors "$rest"
    same "$2" plain-0.05.safetensors "$first"
    same "$2" plain-0.2.safetensors '^(?!blocks\.[0-3]\.)blocks\..*weight'
    same "$2" run/snapshot-0000500-0.100.safetensors "$third"
    same "$2" plain-0.15.safetensors "$rest"
}
synth -j1 --sigma-rel 0.1,0.15 "${rules[@]}" run one/
check one/phema-0000500-0.100.safetensors one/phema-0000500-0.150.safetensors
echo "each tensor is that of its own width"
again() { # name, options: the same bytes as before
    local name=$1
    shift
    synth "$@" --sigma-rel 0.1,0.15 "${rules[@]}" run "$name/"
    for width in 100 150; do
        cmp "one/phema-0000500-0.$width.safetensors" "$name/phema-0000500-0.$width.safetensors"
    done
    echo "$name: same"
}
again threads -j3
again mapped --io mmap
again direct --io direct
again tight --max-ram "$((6 + ${sanitize:+400}0))M"
PHEMA_CPU=ref again plainly
synth -j2 --sigma-rel 0.1 "${rules[@]}" run alone.safetensors
cmp alone.safetensors one/phema-0000500-0.100.safetensors && echo "alone: same"
for part in 1/3 2/3 3/3; do
    synth --part $part --sigma-rel 0.1,0.15 "${rules[@]}" run parts/ 2>/dev/null
done
"$phema" join -q --no-sync parts/ >/dev/null
cmp parts/phema-0000500-0.150.safetensors one/phema-0000500-0.150.safetensors && echo "parts: same"
synth --at 500 --sigma-rel 0.1,0.15 "${rules[@]}" --shard-size 100k run shards/
check shards/phema-0000500-0.100 shards/phema-0000500-0.150

# compressed snapshots, then targets at two times
mkdir packed
for file in run/*.safetensors; do zstd -q "$file" -o "packed/$(basename "$file").zst"; done
synth -j2 --sigma-rel 0.1,0.15 "${rules[@]}" packed unpacked/
check unpacked/phema-0000500-0.100.safetensors.zst unpacked/phema-0000500-0.150.safetensors.zst
synth --at 300,500 --sigma-rel 0.1 "${rules[@]}" run times/
cmp times/phema-0000500-0.100.safetensors alone.safetensors
synth --at 300 --sigma-rel 0.2 run early.safetensors
same times/phema-0000300-0.100.safetensors early.safetensors '^(?!blocks\.[0-3]\.)blocks\..*weight'
same times/phema-0000300-0.100.safetensors run/snapshot-0000300-0.100.safetensors "$third"
echo "at two times, and from compressed snapshots: each tensor is that of its own width"
