# An output that cannot be written is reported in one line before any file is made. Existing files stay untouched.
"$phema" gen -q --count 2 --no-sync run >/dev/null
touch before
newest=run/snapshot-0004096-0.100.safetensors
ema=$fixtures/ema_pytorch/snapshots
say() { # what synth says, and its status
    # shellcheck disable=SC2069 # stderr alone, without stdout
    "$phema" synth -q "$@" 2>&1 >/dev/null
    echo "  $?"
}
echo "- a copy of another format than OUT"
say --sigma-rel 0.1 run out.pt
say --sigma-rel 0.1 run out.pkl
say --weights "$fixtures/ema_pytorch/weights_0.10.txt" "$ema" out.pkl
say --metric profile --sigma-rel 0.1 "$fixtures/edm2/snapshots" out.pt
say --sigma-rel 0.1 --into "$ema/1.300.pt" run out.safetensors
say --sigma-rel 0.1 --into $newest run out.safetensors.zst
say --weights "$fixtures/ema_pytorch/weights_0.10.txt" --dtype f32 "$ema" out.pt
echo "- a copy of what is not one file"
say --sigma-rel 0.1 --into "$fixtures/sharded" run out.safetensors
say --sigma-rel 0.1 --into "$fixtures/zst/single.safetensors.zst" run out.safetensors.zst
say --sigma-rel 0.1 --into "$fixtures/dcp/one_rank" run out.pt
say --sigma-rel 0.1 --into "$fixtures/dcp/one_rank" run model/
say --sigma-rel 0.1 --into missing.pt run out.pt
echo "- a copy of another model"
say --sigma-rel 0.1 --into "$fixtures/safetensors/shapes.safetensors" run out.safetensors
say --sigma-rel 0.1 --into "$ema/1.300.pt" run out.pt
echo "- of several averages, one of which would have to be replaced"
say --sigma-rel 0.2 "$fixtures/lightning/stds_emas" out.ckpt
echo "- names"
say --sigma-rel 0.1 run out
say --sigma-rel 0.1 run out.bin
say --sigma-rel 0.1 run ''
say --sigma-rel 0.05,0.1 run out.safetensors
say --sigma-rel 0.05,0.1 run out.safetensors.zst
say --sigma-rel 0.1 run '{width}.safetensors'
say --sigma-rel 0.1 run missing/out.safetensors
echo "- shards"
say --sigma-rel 0.1 --shard-size 1MiB run out.safetensors
say --sigma-rel 0.1 --shard-size 0 run out
say --sigma-rel 0.1 --shard-size 1MiB --into $newest run out
say --sigma-rel 0.1 --shard-size 1MiB run $newest
echo "- conversions"
say --convert --sigma-rel 0.1 $newest out.safetensors
say --convert --weights before $newest out.safetensors
say --convert $newest out/
say --convert $newest .
say --convert $newest out
say --convert $newest '{time}.safetensors'
say --convert $newest out.pt
say --convert run out.safetensors
say --convert --include nothing $newest out.safetensors
say --convert --key nothing $newest out.safetensors
say --convert "$fixtures/torch/dtypes.pt" out.safetensors
say --convert "$fixtures/torch/dtypes.pt" out.safetensors.zst
say --convert --shard-size 1KiB "$fixtures/torch/dtypes.pt" out
say --convert $newest $newest
say --convert --level 23 $newest out.safetensors.zst
echo "- what is there"
mkdir full empty && touch full/model.safetensors full/other
echo kept >there.safetensors.zst
echo kept >there.pt
echo kept >beside.pt.json
say --sigma-rel 0.1 run there.safetensors.zst
say --weights "$fixtures/ema_pytorch/weights_0.10.txt" "$ema" there.pt
say --weights "$fixtures/ema_pytorch/weights_0.10.txt" "$ema" beside.pt
say --sigma-rel 0.1 --shard-size 1MiB run full
say --sigma-rel 0.1 --shard-size 1MiB run there.pt/
mkdir full/below
say --sigma-rel 0.1 --shard-size 1MiB -f run full
cat there.* beside.*
echo "- snapshots, and directories of them"
cp -r "$fixtures/ema_pytorch/snapshots" mine
say --weights "$fixtures/ema_pytorch/weights_0.10.txt" -f mine mine/1.300.pt
say --sigma-rel 0.1 --shard-size 1MiB -f run run
say --sigma-rel 0.1 --shard-size 1MiB -f run ./run/../run/
mkdir -p hf/checkpoint-{1,2}
cp "$fixtures"/sharded/model*.{safetensors,index.json} hf/checkpoint-1
cp "$fixtures"/sharded/model*.{safetensors,index.json} hf/checkpoint-2
printf 'checkpoint-1 0.5\ncheckpoint-2 0.5\n' >weights.txt
say --weights weights.txt -f hf hf/checkpoint-1
say --convert -f hf/checkpoint-1 hf/checkpoint-1
for f in mine/* hf/checkpoint-2/model*; do
    cmp "$f" "$fixtures/$(case $f in mine*) echo "ema_pytorch/snapshots" ;; *) echo sharded ;; esac)/${f##*/}"
done
ls -A
