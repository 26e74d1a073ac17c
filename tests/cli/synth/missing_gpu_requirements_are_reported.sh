# The module is missing, is not a library, or belongs to another program or version; or a driver or device is missing.
# Each gives one sentence and status 7, and writes nothing. Without --device cuda the program uses the CPU.
mkdir bin
cp "$phema" bin/posthoc-ema
gpu=bin/posthoc-ema
here=$(pwd -P)
"$gpu" gen --quiet --count 3 run >/dev/null
run() {
    "$gpu" synth --quiet "$@" --sigma-rel 0.1 run out.safetensors 2>&1 |
        sed -E -e "s|$here|HERE|g" -e 's| neither .* is there| neither A nor B is there|'
    echo "${PIPESTATUS[0]}"
}
echo '-- no module'
run --device cuda
echo '-- no library'
echo 'this is no library' >bin/posthoc-ema-cuda.so
run --device cuda
run --device cuda:all --gpu-memory 1G
"$gpu" weights --quiet --solver cusolver --sigma-rel 0.1 run 2>&1 | sed "s|$here|HERE|g"
echo '-- another version'
cp "$other" bin/posthoc-ema-cuda.so
run --device cuda
echo '-- another library'
cp "$(readlink -f "$(dirname "$phema")"/tests/libfaults.so)" bin/posthoc-ema-cuda.so
run --device cuda
echo '-- elsewhere it is not looked for'
mkdir elsewhere
mv bin/posthoc-ema-cuda.so elsewhere/
(
    cd elsewhere || exit
    cp "$sim" posthoc-ema-cuda.so
    LD_LIBRARY_PATH=. ../bin/posthoc-ema synth --quiet --device cuda --sigma-rel 0.1 ../run out.safetensors 2>&1 |
        sed -E 's| neither .* is there| neither A nor B is there|'
)
echo '-- a directory'
mkdir bin/posthoc-ema-cuda.so
run --device cuda
rmdir bin/posthoc-ema-cuda.so
cp "$sim" bin/posthoc-ema-cuda.so
echo '-- no driver'
SIM_DRIVER=none run --device cuda
echo '-- no device'
SIM_DEVICES=0 run --device cuda
run --device cuda:3
SIM_MAJOR=7 run --device cuda
echo '-- not enough of it'
run --device cuda --gpu-memory 10k
SIM_LARGEST=100 run --device cuda
echo '-- it breaks'
SIM_BREAKS_AT=5 run --device cuda
ls
echo '-- usage'
for wrong in gpu cuda: cuda:0,0; do
    run --device $wrong
done
for wrong in x -1 0; do
    run --device cuda --gpu-memory $wrong
done
echo '-- left to itself'
SIM_DRIVER=none run --device auto
SIM_DRIVER=none run --force
