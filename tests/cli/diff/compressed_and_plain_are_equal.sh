for file in single unknown_size no_checksum long_window multi pzstd seekable; do
    "$phema" diff "$fixtures/zst/$file.safetensors.zst" "$fixtures/zst/content.safetensors"
done
# Frames of the zstd program: one whose header omits the size of the content, and one without a checksum.
zstd -q -c --long=27 -19 <"$fixtures/safetensors/dtypes.safetensors" >piped.safetensors.zst
"$phema" diff "$fixtures/safetensors/dtypes.safetensors" piped.safetensors.zst
zstd -q -c --no-check "$fixtures/safetensors/shapes.safetensors" >shapes
"$phema" diff shapes "$fixtures/safetensors/shapes.safetensors"
