"$phema" inspect "$fixtures/safetensors/dtypes.safetensors" >/dev/full
