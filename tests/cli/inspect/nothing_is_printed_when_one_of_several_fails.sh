"$phema" inspect "$fixtures/safetensors/no_tensors.safetensors" missing.safetensors
