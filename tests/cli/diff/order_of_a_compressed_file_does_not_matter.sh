# One file holds the data of three tensors forward, the other backward and without the content size.
# Then one byte of the middle tensor differs.
one='{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]},"c":{"dtype":"F16","shape":[1],"data_offsets":[4,6]}}'
two='{"a":{"dtype":"U8","shape":[2],"data_offsets":[4,6]},"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]},"c":{"dtype":"F16","shape":[1],"data_offsets":[0,2]}}'
put() { # JSON, data
    printf "\\$(printf %o ${#1})\\0\\0\\0\\0\\0\\0\\0%s$2" "$1"
}
put "$one" 'AABBCC' >forward.safetensors
put "$one" 'AABBCC' | zstd -q -c >forward.safetensors.zst
put "$two" 'CCBBAA' | zstd -q -c >backward.safetensors.zst
put "$two" 'CCBxAA' | zstd -q -c >other.safetensors.zst
for a in forward.safetensors forward.safetensors.zst; do
    "$phema" diff "$a" backward.safetensors.zst
    "$phema" diff backward.safetensors.zst "$a"
    "$phema" diff --json "$a" other.safetensors.zst | grep -c '"unequal": 1'
    "$phema" diff other.safetensors.zst "$a" | grep ' b '
done
