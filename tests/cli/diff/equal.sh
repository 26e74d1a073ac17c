"$phema" diff "$fixtures/torch/plain.pt" "$fixtures/torch/plain.pt"
"$phema" diff "$fixtures/sharded" "$fixtures/sharded/model.safetensors.index.json"
