# Reads ahead of the sums, by threads and by io_uring: short and interrupted ones are continued; a failed read ends the run with one
# sentence that names file, tensor and offset, and leaves nothing.
tests=$(dirname "$phema")/tests shim=$(dirname "$phema")/tests/libreading_shim.so
"$phema" gen -q --count 4 --steps 40 --params 100k --tensors 3 --dtype f32 run >/dev/null
for f in run/*.safetensors; do echo "${f#run/} 0.125"; done >weights.txt
"$phema" synth -q --io mmap --weights weights.txt run mapped.safetensors >/dev/null
if ! "$phema" synth -q --io direct --weights weights.txt run out.safetensors >/dev/null 2>probe; then
    echo "skipped: files cannot be read past the page cache here" >&2
    exit 77
fi
shimmed() {
    env "$@" LD_PRELOAD="$shim" "$tests/without_uring" ENOSYS \
        "$phema" synth -q -f -j1 --io direct --weights weights.txt run out.safetensors
}
show() { sed -E "s/run[^ ]*-[0-9.]+\.safetensors/run\/FILE/; s/tensor '[^']*'/tensor 'T'/; s/offset [0-9]+/offset N/; s/expected [0-9]+/expected N/"; }

shimmed SHIM_SHORT=8192 SHIM_COUNT=count >/dev/null
cmp out.safetensors mapped.safetensors && [ "$(cat count)" -ge 400 ] && echo "completed"
rm out.safetensors
shimmed SHIM_FAIL_AT=5 2>&1 | show
shimmed SHIM_END_AT=5 2>&1 | show

ring() { # fault; the same happens by threads where the kernel has no io_uring, or cannot end its reads with an error
    env LD_PRELOAD="$(dirname "$shim")/libfaults.so" FAULT_CALLS=io_uring_read FAULT_AT=5 FAULT_TOLD=told "${@:2}" FAULT_WITH="$1" \
        "$phema" synth -q -f -j1 --io direct --weights weights.txt run out.safetensors
}
for fault in EINTR EAGAIN short "short FAULT_STAYS=1" "EAGAIN FAULT_STAYS=1"; do
    # shellcheck disable=SC2086 # several words
    ring $fault >/dev/null
    cmp out.safetensors mapped.safetensors && echo "io_uring, $fault: completed"
    rm out.safetensors
done
ring EIO >/dev/null 2>message
grep -q io_uring_read told || shimmed SHIM_FAIL_AT=5 2>message
show <message
rm -f out.safetensors told message
ls
