# --ranks N writes a distributed checkpoint of N files. It holds the tensors of any other output, whether one process
# writes it or several, and whether it is read back or not. It converts to safetensors and back without a change.
"$phema" gen -q --count 3 --steps 30 --params 60k --tensors 12 --dtype bf16 --no-sync run >/dev/null
"$phema" synth -q --no-sync --sigma-rel 0.1 run plain.safetensors >/dev/null
for ranks in 1 2 3 4; do
    "$phema" synth -q --no-sync --verify --sigma-rel 0.1 --ranks $ranks run whole/ >/dev/null
    ls -A whole | tr '\n' ' ' && echo
    "$phema" diff -q whole plain.safetensors >/dev/null && echo "as in safetensors"
    "$phema" verify whole
    for part in 2 3 1; do
        "$phema" synth -q --no-sync --verify --sigma-rel 0.1 --part $part/3 --ranks $ranks run parts/
    done
    "$phema" join -q --no-sync parts >/dev/null && diff -r whole parts && echo "same in parts"
    rm -r whole parts
done
echo "- several widths"
"$phema" synth --no-sync -q --sigma-rel 0.1,0.2 --ranks 2 run sweep/
echo "- there and back"
"$phema" synth -q --no-sync --convert --ranks 3 plain.safetensors there/
"$phema" synth -q --no-sync --convert --shard-size 40k there shards/
"$phema" synth -q --no-sync --convert --ranks 3 shards again/
"$phema" diff -q plain.safetensors shards && diff -r there again && echo "same"
ls -A there
echo "- an output is no snapshot"
cp -r sweep/phema-0000030-0.100 run/snapshot-0000030-0.070
"$phema" synth --no-sync --sigma-rel 0.1 run out.safetensors 2>&1 | grep 'left out'
