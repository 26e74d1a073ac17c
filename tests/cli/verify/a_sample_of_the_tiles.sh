# --sample N compares N tiles, evenly spaced over all. Each run picks the same tiles, with any number of
# threads. Threads that decompress snapshots in turns skip the tiles outside the sample.
"$phema" gen -q --count 2 --steps 20 --params 2M --tensors 3 --dtype f16 run >/dev/null
"$phema" synth -q --sigma-rel 0.1 run out.safetensors >/dev/null
show() { grep -e '"tiles' -e equal -e '"elements":' | tr -d '\n'; echo; }
"$phema" verify --json out.safetensors | show
for n in 1 2 7 1000; do
    "$phema" verify -q --json --sample $n -j1 out.safetensors | show
    "$phema" verify -q --json --sample $n -j3 --io mmap out.safetensors | show
done
for f in run/*.safetensors; do zstd -q --rm "$f"; done
"$phema" verify -q --json --sample 7 -j3 --snapshots run out.safetensors 2>&1
echo "status $?"
"$phema" synth -q -f --sigma-rel 0.1 run out.safetensors >/dev/null
"$phema" verify -q --json --sample 7 -j3 out.safetensors | show
"$phema" verify -q --json -j3 out.safetensors | show
