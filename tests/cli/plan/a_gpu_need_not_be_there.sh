# plan forecasts the GPU use of a run without a GPU: bytes follow from the snapshots and --gpu-memory alone.
"$phema" gen --quiet --count 8 --dtype f16 --steps 64 --params 3M run >/dev/null
plan() {
    "$phema" plan --json --quiet --assume-bandwidth 10G --threads 4 --metric walk "$@" run |
        grep -E '^ "(gpu_|device|tile_|passes|threads|read_bytes)'
}
echo '-- much'
plan --device cuda --gpu-memory 8GiB --sigma-rel 0.13
echo '-- little'
plan --device cuda --gpu-memory 10M --sigma-rel 0.0515:0.2495:0.002
echo '-- two devices'
plan --device cuda:0,1 --gpu-memory 8GiB --sigma-rel 0.055:0.245:0.01
echo '-- cuBLAS'
plan --device cuda --gpu-memory 8GiB --gpu-sums cublas --sigma-rel 0.055:0.245:0.01
echo '-- for people'
"$phema" plan --quiet --assume-bandwidth 10G --threads 4 --device cuda --gpu-memory 60M --metric walk \
    --sigma-rel 0.0515:0.2495:0.002 run | grep -E '^(gpu|time)' | sed 's/[0-9.]* s (/S s (/; s/read [^,]*, //'
echo '-- too little'
"$phema" plan --quiet --device cuda --gpu-memory 100k --sigma-rel 0.13 run
echo $?
echo '-- of a device that is not there'
mkdir bin
cp "$phema" bin/posthoc-ema
bin/posthoc-ema plan --quiet --device cuda --gpu-memory 0.5 --sigma-rel 0.13 run 2>&1 | cut -d: -f 1-3
cp "$sim" bin/posthoc-ema-cuda.so
echo '-- of one that is'
SIM_BYTES=100000000 bin/posthoc-ema plan --quiet -j2 --device cuda --gpu-memory 0.5 --sigma-rel 0.13 run |
    grep ^gpu
