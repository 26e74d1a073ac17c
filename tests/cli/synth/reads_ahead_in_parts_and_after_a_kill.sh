# Inputs that are read ahead in parts of an output, where a killed run was, for a sample of the tiles, from shards,
# pickles and pieces of tensors, with rules: the bytes are those of --io read.
# shellcheck disable=SC2086 # options are several words
shim=$(dirname "$phema")/tests/libfaults.so
"$phema" gen -q --count 4 --steps 40 --params 2M --tensors 14 --dtype f16 --no-sync run >/dev/null
direct=direct # where the directory's filesystem can
"$phema" synth -q --io direct --sigma-rel 0.1 run probe.safetensors >/dev/null 2>probe || direct="read"
same() { # label, file
    cmp "$2" "${3-whole.safetensors}" && echo "$1: the same"
}
"$phema" synth -q --no-sync --io read --sigma-rel 0.1 run whole.safetensors >/dev/null

for part in 2 3 1; do
    "$phema" synth -q --no-sync -j2 --io $direct --part $part/3 --sigma-rel 0.1 run parts.safetensors >/dev/null
done
"$phema" join -q parts.safetensors >/dev/null
same parts parts.safetensors

{ env LD_PRELOAD="$shim" FAULT_CALLS=pwrite FAULT_PATH=.partial FAULT_PAUSE=70 FAULT_WITH=KILL FAULT_AT=7 \
    "$phema" synth -q --no-sync --resume -j2 --io $direct --sigma-rel 0.1 run killed.safetensors; } 2>/dev/null
echo "status $?"
"$phema" synth -q --no-sync --resume -j3 --io $direct --sigma-rel 0.1 run killed.safetensors >/dev/null
same "after a kill" killed.safetensors
"$phema" verify -q --sample 3 --io $direct --io-depth 3 whole.safetensors >/dev/null && echo "a sample: verified"
"$phema" verify -q -j1 --io $direct whole.safetensors >/dev/null && echo "verified"

mkdir shards
for file in run/*.safetensors; do
    "$phema" synth -q --no-sync --convert --shard-size 900k "$file" "shards/$(basename "$file" .safetensors)" >/dev/null
done
cp -r "$fixtures/edm2/snapshots" pickles
mkdir pieces
for snapshot in snapshot-0001000-0.050 snapshot-0002000-0.050; do cp -r "$fixtures/dcp/two_ranks" pieces/$snapshot; done
while read -r name options; do
    ext=safetensors
    [ "$name" = pickles ] && ext=pkl
    for io in read $direct; do
        "$phema" synth -q --no-sync -j2 --io "$io" $options $name "as-$io.$ext" >/dev/null 2>&1
    done
    same "$name" as-read.$ext as-$direct.$ext
    rm -f as-*
done <<'end'
run --sigma-rel 0.1 --rule \.bias=copy --rule \.0=0.2
run --sigma-rel 0.1 --dtype f32 --io-depth 5
shards --sigma-rel 0.1 --name-regex (?<time>[0-9]+)-(?<sigma>[0-9.]+)
pickles --sigma-rel 0.1
pieces --sigma-rel 0.04
end
