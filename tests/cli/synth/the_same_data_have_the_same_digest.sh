# The provenance holds digests of the snapshot data. They depend neither on the way of reading, the processes that
# read and the number of targets, nor on the format. Each output has the digests of a run for that output alone.
digests() { # output: name and digest of each snapshot
    local file=$1
    [ -d "$1" ] && file=$(echo "$1"/model-00001-of-*.safetensors)
    [ -e "$1.json" ] && file=$1.json
    head -c 100000 "$file" | tr -d '\\\0' | grep -ao '"file":"[^"]*"\|"data_xxh3":"[^"]*"' |
        awk -F'"' '/file/ { sub(/\.safetensors.*/, "", $4); name = $4 } /data/ { print name, $4 }'
}
same() { # what, output
    diff <(digests whole.safetensors) <(digests "$2") && echo "$1: same"
}
"$phema" gen -q --count 3 --params 300k --tensors 9 --dtype f16 --steps 40 run >/dev/null
"$phema" synth -q --sigma-rel 0.1 run whole.safetensors >/dev/null
digests whole.safetensors
for options in '-j1' '-j3 --io mmap' '--io direct' '--dtype f32'; do
    # shellcheck disable=SC2086 # options are several words
    "$phema" synth -q $options --sigma-rel 0.1 run other.safetensors >/dev/null
    same "$options" other.safetensors
    rm other.safetensors
done
"$phema" synth -q --shard-size 100k --sigma-rel 0.1 run sharded >/dev/null
same shards sharded
for level in ref avx2; do
    PHEMA_CPU=$level "$phema" synth -q --sigma-rel 0.1 run $level.safetensors >/dev/null
    same $level $level.safetensors
done
for part in 3 1 2; do "$phema" synth -q --no-sync --part $part/3 --sigma-rel 0.1 run joined.safetensors; done
"$phema" join -q joined.safetensors
same "three parts" joined.safetensors
for part in 2 1; do "$phema" synth -q --no-sync --shard-size 100k --part $part/2 --sigma-rel 0.1 run shards; done
"$phema" join -q shards
same "two parts of shards" shards
"$phema" synth -q --verify --sigma-rel 0.1 --into run/snapshot-0000040-0.050.safetensors run into.safetensors >/dev/null
same "a copy" into.safetensors
"$phema" synth -q --sigma-rel 0.1 --verify run out.safetensors.zst >/dev/null
zstd -qd out.safetensors.zst -o plain.safetensors
same "compressed" plain.safetensors
mkdir packed
for file in run/*.safetensors; do zstd -q "$file" -o "packed/${file#run/}.zst"; done
"$phema" synth -q --sigma-rel 0.1 packed unpacked.safetensors >/dev/null
same "of compressed snapshots" unpacked.safetensors
"$phema" verify -q unpacked.safetensors
echo "- several outputs: of each what it was made of, though the run reads more"
"$phema" synth -q --at 20 --sigma-rel 0.1 run early.safetensors >/dev/null
"$phema" synth -q --at 20,40 --sigma-rel 0.05,0.1 run many/ >/dev/null
diff <(digests early.safetensors) <(digests many/phema-0000020-0.100.safetensors) && echo "early: same"
same "late" many/phema-0000040-0.100.safetensors
for out in many/*; do "$phema" verify -q "$out"; done
echo "- and where tensors follow rules"
printf '%s\n' "snapshot-0000013-0.050.safetensors 0" "snapshot-0000040-0.050.safetensors 1" >weights.txt
"$phema" synth -q --weights weights.txt run given.safetensors >/dev/null
digests given.safetensors
"$phema" verify -q given.safetensors
"$phema" synth -q --rule weight=0.07 --rule bias=copy --at 30,40 --sigma-rel 0.1 run ruled/ >/dev/null
"$phema" synth -q --rule weight=0.07 --rule bias=copy --at 40 --sigma-rel 0.1 run ruled.safetensors >/dev/null
diff <(digests ruled.safetensors) <(digests ruled/phema-0000040-0.100.safetensors) && echo "ruled: same"
for out in ruled/* ; do "$phema" verify -q "$out"; done
