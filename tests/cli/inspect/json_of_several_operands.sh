"$phema" inspect --json "$fixtures/safetensors/no_tensors.safetensors" "$fixtures/torch/single_tensor.pt"
