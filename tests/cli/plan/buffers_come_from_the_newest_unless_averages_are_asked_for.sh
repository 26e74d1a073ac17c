# EDM2's files distinguish buffers from parameters. Buffers are copied, or averaged with --buffers average.
# shellcheck disable=SC2086 # options are several words
run="$fixtures/edm2/snapshots"
for buffers in "" "--buffers newest" "--buffers average"; do
    echo "${buffers:-by default}"
    "$phema" plan -v $buffers --sigma-rel 0.1 "$run" 2>&1 | sed -n 's/^tensors  */  /p; /copied (/p'
done
