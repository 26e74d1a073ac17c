# Skippable and empty frames of the zstd program lie before, between and after those with content.
for name in gaps gaps_unknown_size; do
    "$phema" diff "$fixtures/zst/$name.safetensors.zst" "$fixtures/zst/content.safetensors"
    "$phema" inspect --tensor layer0.bias --raw "$fixtures/zst/$name.safetensors.zst" | sha256sum
done
grep -o '"layer0.bias".*sha256": "[0-9a-f]*' "$fixtures/zst/content.safetensors.expected.json" |
    sed 's/.*"//'
