# --io read reads the data and does not map it. Short and interrupted reads are completed; a failed read ends the
# run with one sentence and leaves nothing. --io auto maps files when there are too few descriptors.
# shellcheck disable=SC2086 # options are several words
shim=$(dirname "$phema")/tests/libreading_shim.so
"$phema" gen -q --count 4 --steps 40 --params 100k --tensors 3 --dtype f32 run >/dev/null
for f in run/*.safetensors; do echo "${f#run/} 0.125"; done >weights.txt
"$phema" synth -q --io mmap --weights weights.txt run mapped.safetensors >/dev/null
shimmed() { env "$@" LD_PRELOAD="$shim" "$phema" synth -j1 --weights weights.txt $io run out.safetensors; }
show() { sed -E 's/at offset [0-9]+/at offset N/; s/in [0-9.]+ s: .*/.../'; }

io="-q --io read" && shimmed SHIM_COUNT=count >/dev/null
cmp out.safetensors mapped.safetensors && [ "$(cat count)" -ge 12 ] && echo "read with pread"
io="-q --io mmap -f" && shimmed SHIM_COUNT=count >/dev/null
[ "$(cat count)" -eq 0 ] && echo "mapped without"
io="-q --io read -f" && shimmed SHIM_SHORT=1000 SHIM_COUNT=count >/dev/null
cmp out.safetensors mapped.safetensors && [ "$(cat count)" -ge 400 ] && echo "completed"
rm out.safetensors

io="-q --io read" && shimmed SHIM_FAIL_AT=5
echo "status $?"
io="-q --io read" && shimmed SHIM_END_AT=5 2>&1 | show
ls

io="-v --io auto" && shimmed SHIM_FILESYSTEM=0x6969 2>&1 | grep "^snapshots"
cmp out.safetensors mapped.safetensors && echo "the same, and no word of it in the file"
io="-v --io auto -f" && shimmed SHIM_FILESYSTEM=0xEF53 2>&1 | grep "^snapshots"
(ulimit -n 40 && "$phema" synth -q -f --io read --weights weights.txt run out.safetensors)
(ulimit -n 40 && "$phema" synth -v -f --io auto --weights weights.txt run out.safetensors 2>&1 | grep "^snapshots")
io="-q -f --io auto" && (ulimit -n 40 && shimmed SHIM_FILESYSTEM=0x6969)
