# A place in the content is none in the file.
"$phema" inspect "$fixtures/zst/pzstd.safetensors.zst"
"$phema" inspect --json "$fixtures/zst/multi.safetensors.zst"
