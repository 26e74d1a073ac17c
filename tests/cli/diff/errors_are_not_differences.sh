exec 2>&1
"$phema" diff missing.pt "$fixtures/torch/plain.pt"
echo "$?"
"$phema" diff "$fixtures/torch/plain.pt" missing.pt
echo "$?"
"$phema" diff "$fixtures/torch/plain.pt" "$fixtures/refuse/meta.pt"
echo "$?"
"$phema" diff "$fixtures/torch/plain.pt" .
echo "$?"
