# Every form holds the same averages: one file, compressed, sharded by size, sharded like the snapshots. zstd
# decompresses the compressed form to the plain file. The index of the shards tells which shard holds a tensor.
"$phema" gen -q --count 4 --params 40k --tensors 12 --no-sync run >/dev/null
"$phema" synth -q --sigma-rel 0.07 run plain.safetensors
"$phema" synth -q --sigma-rel 0.07 run packed.safetensors.zst
"$phema" synth -q --sigma-rel 0.07 --level 19 -j1 run small.safetensors.zst
zstd -qdc packed.safetensors.zst | cmp - plain.safetensors && echo "as zstd has it"
"$phema" synth -q --sigma-rel 0.07 --level 19 -j1 run plain.safetensors --force >/dev/null # records the level
zstd -qdc small.safetensors.zst | cmp - plain.safetensors && echo "as zstd has it"
"$phema" diff packed.safetensors.zst plain.safetensors
echo "- the same bytes on any number of threads"
for j in 1 3 8; do "$phema" synth -q --sigma-rel 0.07 -j$j run t$j.safetensors.zst >/dev/null; done
cmp t1.safetensors.zst t3.safetensors.zst && cmp t1.safetensors.zst t8.safetensors.zst && echo "same"
echo "- shards of a size"
"$phema" synth -q --sigma-rel 0.07 --shard-size 32KiB run sharded/
ls sharded
"$phema" diff sharded plain.safetensors
for shard in sharded/model-*; do
    "$phema" inspect "$shard" | head -n 1 | sed 's/ [0-9]* elements,//'
done
"$phema" inspect --json sharded | tr -d ' \n' | grep -o '"format":"[a-z]*"'
echo "- every tensor in a shard of its own, all in one, and a file that is there already"
"$phema" synth -q --sigma-rel 0.07 --shard-size 1 run tiny
ls tiny/*.safetensors | wc -l
"$phema" synth -q --sigma-rel 0.07 --shard-size 1GiB run whole
ls whole
"$phema" diff tiny whole
echo "- snapshots that are sharded give shards of the same names, with what lies beside the newest"
mkdir -p hf/checkpoint-{100,200}
for step in 100 200; do
    cp "$fixtures"/sharded/model* hf/checkpoint-$step
    echo "{\"step\": $step}" >hf/checkpoint-$step/config.json
    echo "words" >hf/checkpoint-$step/tokenizer.model
    echo "no" | tee hf/checkpoint-$step/optimizer.pt hf/checkpoint-$step/.hidden \
        hf/checkpoint-$step/a.partial hf/checkpoint-$step/rng_state_0.pth >/dev/null
    mkdir hf/checkpoint-$step/runs
done
rm hf/*/*.expected.json
printf 'checkpoint-100 0.5\ncheckpoint-200 0.25\n' >weights.txt
"$phema" synth -q --weights weights.txt hf again
ls -A again
cat again/config.json
"$phema" synth -q --weights weights.txt hf one.safetensors
"$phema" diff again one.safetensors
"$phema" synth -q --weights weights.txt --exclude "$("$phema" inspect "$fixtures/sharded/model-00003-of-00003.safetensors" |
    awk '/ B  / { print $NF; exit }')" hf fewer
"$phema" diff fewer one.safetensors | grep -o 'only in B.*'
echo "- and again by size"
"$phema" synth -q --weights weights.txt --shard-size 1KiB hf by_size
ls by_size/*.safetensors | wc -l
"$phema" diff by_size one.safetensors
echo "- several targets"
"$phema" synth -q --sigma-rel 0.05,0.1 --shard-size 64KiB run sweep
"$phema" synth -q --sigma-rel 0.05 run one.safetensors -f
"$phema" diff sweep/phema-0004096-0.050 one.safetensors
"$phema" synth -q --sigma-rel 0.05,0.1 --shard-size 64KiB run 'at-{sigma}'
diff -r at-0.050 sweep/phema-0004096-0.050 && diff -r at-0.100 sweep/phema-0004096-0.100 && echo "same"
"$phema" synth -q --sigma-rel 0.05,0.1 run 'at-{sigma}-{time}.safetensors.zst'
"$phema" diff at-0.050-0004096.safetensors.zst one.safetensors
echo "- a directory of compressed snapshots gives compressed ones"
mkdir zst
for f in run/*.safetensors; do zstd -q "$f" -o zst/"${f#run/}".zst; done
"$phema" synth -q --sigma-rel 0.05,0.1 zst unzipped/
zstd -qdc unzipped/phema-0004096-0.050.safetensors.zst >plain.again
"$phema" synth -q --convert unzipped/phema-0004096-0.050.safetensors.zst from_zst.safetensors
cmp plain.again from_zst.safetensors && "$phema" diff from_zst.safetensors one.safetensors
