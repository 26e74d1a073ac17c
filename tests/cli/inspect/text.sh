"$phema" inspect "$fixtures/safetensors/dtypes.safetensors"
"$phema" inspect "$fixtures/torch/views.pt"
"$phema" inspect "$fixtures/safetensors/no_tensors.safetensors"
