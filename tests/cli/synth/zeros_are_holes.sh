# A tensor of zeros takes no space on disk, and reads as zeros.
zeros=$((1 << 20)) # elements of f32
header='{"w":{"dtype":"F32","shape":[1048576],"data_offsets":[0,4194304]},"x":{"dtype":"F32","shape":[8],"data_offsets":[4194304,4194336]}}      '
mkdir run
for t in 1 2; do
    {
        printf "\\x$(printf %02x ${#header})\\0\\0\\0\\0\\0\\0\\0%s" "$header"
        head -c $((4 * zeros)) /dev/zero
        printf '%032d' $t
    } >run/x-$t.safetensors
done
printf 'x-1.safetensors 0.5\nx-2.safetensors 0.25\n' >weights
"$phema" synth -q --name-regex 'x-(?<time>[0-9]+)' --weights weights run out.safetensors >/dev/null
size=$(stat -c %s out.safetensors) used=$(($(stat -c %b out.safetensors) * 512))
cp --sparse=always run/x-1.safetensors probe # can this filesystem have holes at all?
if [ $(($(stat -c %b probe) * 512)) -gt $((zeros)) ]; then
    echo "skipped: this filesystem has no holes" >&2
    exit 77
fi
[ "$size" -gt $((4 * zeros)) ] && [ $used -lt $((zeros)) ] && echo "holes"
tail -c +9 out.safetensors | head -c $((4 * zeros)) | tail -c $((4 * zeros - 65536)) | tr -d '\0' | wc -c
"$phema" synth -q --name-regex 'x-(?<time>[0-9]+)' --shard-size 8M --weights weights run shards >/dev/null
[ $(($(stat -c %b shards/model-00001-of-00001.safetensors) * 512)) -lt $zeros ] && echo "holes in shards"
