# N processes at once, with different numbers of threads, write the same bytes as one run.
parts() { # N OUT ARGUMENTS...: all at once; part i on 1 + i % 3 threads
    local n=$1 out=$2 pids=() i failed=0
    shift 2
    for ((i = 1; i <= n; i++)); do
        "$phema" synth -q --part $i/"$n" -j$((1 + i % 3)) "$@" "$out" &
        pids+=($!)
    done
    for i in "${pids[@]}"; do wait "$i" || failed=1; done
    [ $failed = 0 ] && "$phema" join -q "$out"
}
"$phema" gen -q --count 5 --steps 300 --params 300k --tensors 9 --dtype f16 --no-sync run >/dev/null
"$phema" synth -q --sigma-rel 0.03,0.15,0.25 run whole/ >/dev/null
echo "- three widths at once"
for n in 1 2 3 7; do
    parts $n by$n/ --sigma-rel 0.03,0.15,0.25 run
    diff -r whole by$n && echo "$n parts: same"
done
echo "- more parts than blocks"
"$phema" gen -q --count 2 --params 3k --tensors 3 --no-sync small >/dev/null
"$phema" synth -q --sigma-rel 0.1 small small.safetensors
parts 16 small16.safetensors --no-sync --sigma-rel 0.1 small
cmp small.safetensors small16.safetensors && echo "same"
echo "- another dtype, and tiles cut short by many targets"
"$phema" synth -q --sigma-rel 0.01:0.28:0.01 --dtype f32 run many/ >/dev/null
parts 3 many3/ --no-sync --sigma-rel 0.01:0.28:0.01 --dtype f32 run | wc -l
diff -r many many3 && echo "same"
echo "- memory that differs: smaller tiles"
limit=4M
[ -n "${sanitize:-}" ] && limit=1G # sanitizers have memory of their own
"$phema" synth -q --part 1/2 -j1 --max-ram $limit --sigma-rel 0.01:0.28:0.01 --dtype f32 run less/
"$phema" synth -q --part 2/2 --sigma-rel 0.01:0.28:0.01 --dtype f32 run less/
"$phema" join -q less/ | wc -l
diff -r many less && echo "same"
echo "- snapshots that are decompressed, with and without an index"
mkdir zst
for f in run/*.safetensors; do zstd -q "$f" -o zst/"${f#run/}".zst; done
"$phema" synth -q --sigma-rel 0.15 zst zst.safetensors
parts 3 zst3.safetensors --sigma-rel 0.15 zst
cmp zst.safetensors zst3.safetensors && echo "same"
"$phema" synth -q --convert run/snapshot-0000300-0.050.safetensors seekable.safetensors.zst
"$phema" synth -q --convert seekable.safetensors.zst plain.safetensors
parts 4 plain4.safetensors --convert seekable.safetensors.zst
cmp plain.safetensors plain4.safetensors && echo "same"
echo "- tensors that share storage, strided, of no elements, complex"
for file in views.pt module_state_dict.pth dtypes.pt; do
    "$phema" synth -q --exclude '^(c128|complex128)' --convert "$fixtures/torch/$file" torch.safetensors >/dev/null
    parts 5 torch5.safetensors --exclude '^(c128|complex128)' --convert "$fixtures/torch/$file" >/dev/null
    cmp torch.safetensors torch5.safetensors && echo "$file: same"
    rm torch*.safetensors
done
echo "- blocks that are equal in all snapshots, the bits of NaNs among them, and integers"
mkdir frozen
bytes() { head -c "$1" /dev/zero | tr '\0' "\\$2"; }
for time in 1 2 3; do
    header='{"same":{"dtype":"F16","shape":[5000],"data_offsets":[0,10000]},'
    header+='"half":{"dtype":"F16","shape":[6000],"data_offsets":[10000,22000]},'
    header+='"count":{"dtype":"I64","shape":[3000],"data_offsets":[22000,46000]}}'
    while ((${#header} % 8)); do header+=' '; done
    {
        printf "\\x$(printf %02x ${#header})\\0\\0\\0\\0\\0\\0\\0%s" "$header"
        bytes 10000 176 # 0x7e7e is NaN
        bytes 6000 074
        bytes 6000 06$time
        bytes 24000 00$time
    } >frozen/x-$time-0.05.safetensors
done
{
    "$phema" synth -q --sigma-rel 0.1 frozen frozen.safetensors
    parts 6 frozen6.safetensors --sigma-rel 0.1 frozen
} 2>notes # each part warns of the NaNs that it writes
sed 's/[0-9]* NaN/N NaN/' notes | sort | uniq -c
rm notes
cmp frozen.safetensors frozen6.safetensors && echo "same"
echo "- compressed outputs, whose frames lie within parts or between them"
"$phema" gen -q --count 1 --steps 8 --params 10M --tensors 9 --no-sync large >/dev/null
mkdir packed{,1,2,3,5}
"$phema" synth -q --no-sync --sigma-rel 0.06,0.08 large 'packed/{sigma}.safetensors.zst' >/dev/null
for n in 1 2 3 5; do
    for ((i = 1; i <= n; i++)); do
        "$phema" synth -q --no-sync --part $i/$n -j$((1 + i % 3)) --sigma-rel 0.06,0.08 large "packed$n/{sigma}.safetensors.zst" &
    done
    wait
    "$phema" join -q packed$n >/dev/null
    diff -r packed packed$n && echo "$n parts: same"
done
"$phema" synth -q --no-sync --verify --level 1 --sigma-rel 0.06 large level.safetensors.zst
for i in 1 2; do "$phema" synth -q --no-sync --verify --level 1 --part $i/2 --sigma-rel 0.06 large level2.safetensors.zst; done
ls -s level2.safetensors.zst.part-*.frames | grep -vc '^0 ' # each has frames of its own
"$phema" join -q level2.safetensors.zst
cmp level.safetensors.zst level2.safetensors.zst && echo "same"
"$phema" verify -q level2.safetensors.zst
parts 7 small7.safetensors.zst --sigma-rel 0.1 small
"$phema" synth -q --sigma-rel 0.1 small small.safetensors.zst
cmp small.safetensors.zst small7.safetensors.zst && echo "same"
rm -r large packed* level*
echo "- directories of shards, with what lies beside the newest snapshot's"
"$phema" synth -q --sigma-rel 0.15 --shard-size 64KiB run shards
parts 3 shards3/ --sigma-rel 0.15 --shard-size 64KiB run
diff -r shards shards3 && echo "same"
mkdir -p hf/checkpoint-{100,200}
for step in 100 200; do
    cp "$fixtures"/sharded/model* hf/checkpoint-$step
    echo "{\"step\": $step}" >hf/checkpoint-$step/config.json
    echo "words" >hf/checkpoint-$step/tokenizer.model
done
rm hf/*/*.expected.json
printf 'checkpoint-100 0.5\ncheckpoint-200 0.25\n' >weights.txt
"$phema" synth -q --weights weights.txt hf again
parts 3 again3 --weights weights.txt hf
diff -r again again3 && echo "same"
"$phema" synth -q --sigma-rel 0.05,0.1 --shard-size 64KiB run sweep >/dev/null
parts 2 sweep2 --sigma-rel 0.05,0.1 --shard-size 64KiB run
diff -r sweep sweep2 && echo "same"
echo "- nothing else is left"
ls
