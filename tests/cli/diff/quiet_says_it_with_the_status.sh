"$phema" diff -q "$fixtures/torch/plain.pt" "$fixtures/torch/parameters.pt"
echo "$?"
"$phema" diff -q "$fixtures/torch/plain.pt" "$fixtures/torch/plain.pt"
echo "$?"
