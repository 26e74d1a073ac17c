# The model has hundreds of small tensors, and the program processes several at a time. Each average stays the
# same: compressed, sharded, chosen or all, on any number of threads, for one target or many.
"$phema" gen -q --no-sync --count 4 --steps 400 --tensors 700 --params 90k --dtype f16 run >/dev/null
"$phema" synth -q --no-sync -j1 --metric walk --sigma-rel 0.07,0.09 run plain/ >/dev/null
same() { "$phema" diff "$1" plain/phema-0000400-0.070.safetensors; }
mkdir zst mixed shards
for f in run/*.safetensors; do
    name=${f#run/}
    zstd -q1 <"$f" >zst/"$name".zst
    case $name in
    *-0.050*) cp "$f" mixed ;;
    *) cp zst/"$name".zst mixed ;;
    esac
done
for kind in run zst mixed; do
    for j in 1 3; do
        "$phema" synth -q --no-sync -j$j --metric walk --sigma-rel 0.07 $kind $kind-$j.safetensors >/dev/null
        same $kind-$j.safetensors
    done
done
"$phema" synth -q --no-sync --metric walk --sigma-rel 0.07 --shard-size 50k run shards/out/ >/dev/null
same shards/out
"$phema" synth -q --no-sync --metric walk --sigma-rel 0.07 run out.safetensors.zst >/dev/null
same out.safetensors.zst
echo "- one in four: the others are missing"
"$phema" synth -q --no-sync --include '[02468]\.weight$' --metric walk --sigma-rel 0.07 run half.safetensors >/dev/null
same half.safetensors | tail -1
