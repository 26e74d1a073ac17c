# An offset in the decompressed content is no offset in the file.
"$phema" inspect "$fixtures/zst/pzstd.safetensors.zst"
"$phema" inspect --json "$fixtures/zst/multi.safetensors.zst"
