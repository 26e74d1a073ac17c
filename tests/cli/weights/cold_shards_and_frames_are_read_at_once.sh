# Cold checkpoints of several files, and compressed ones: the headers of all of them are requested at
# once, and so are the frames that the sample needs.
slow=$(dirname "$phema")/tests/slow_mount
"$phema" gen -q --count 5 --steps 5 --params 300k --tensors 20 --no-sync run >/dev/null
mkdir view shards frames pieces
"$slow" run view true 2>error || { [ $? = 77 ] && { cat error >&2; exit 77; }; }
for file in run/snapshot*; do
    name=$(basename "$file" .safetensors)
    "$phema" synth -q --no-sync --convert --shard-size 400k "$file" "shards/$name/" >/dev/null
    "$phema" synth -q --no-sync --convert --level 1 "$file" "frames/$name.safetensors.zst" >/dev/null
    cp -r "$fixtures/dcp/two_ranks" "pieces/$name"
done
check() { # set, bound
    # Reads end when six are in flight, or when the program waits for fewer.
    timeout 600 "$slow" --until 6 --report reads "$1" view \
        "$phema" weights -q --sigma-rel 0.1 view >cold
    "$phema" weights -q --sigma-rel 0.1 "$1" | diff cold - && echo "$1: the weights are those of warm files"
    in_vain=$(sed -E 's/.*"in_vain": ([0-9]+),.*/\1/' reads)
    if [ "$in_vain" -le "$2" ]; then in_vain="at most $2"; fi
    echo "$1: reads that waited for others in vain: $in_vain"
}
check shards 30
check frames 75
check pieces 12
