# Files of EDM2 tell buffers from parameters: they are copied, or averaged where that is asked for.
# shellcheck disable=SC2086 # options are several words
run="$fixtures/edm2/snapshots"
for buffers in "" "--buffers newest" "--buffers average"; do
    echo "${buffers:-by default}"
    "$phema" plan $buffers --sigma-rel 0.1 "$run" 2>&1 | sed -n 's/^tensors  */  /p; /copied (/p'
done
