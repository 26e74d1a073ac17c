"$phema" diff "$fixtures/torch/plain.pt" "$fixtures/torch/parameters.pt"
echo "$?"
"$phema" diff --json --tolerance 1e9 "$fixtures/torch/plain.pt" "$fixtures/torch/parameters.pt"
