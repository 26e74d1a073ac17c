"$phema" inspect --json "$fixtures/safetensors/metadata.safetensors"
"$phema" inspect --json "$fixtures/torch/views.pt"
