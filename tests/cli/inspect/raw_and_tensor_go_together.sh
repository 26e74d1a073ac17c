exec 2>&1
"$phema" inspect --raw "$fixtures/torch/plain.pt"
echo "$?"
"$phema" inspect --tensor a "$fixtures/torch/plain.pt"
echo "$?"
"$phema" inspect --raw --tensor a "$fixtures/torch/plain.pt" "$fixtures/torch/plain.pt"
echo "$?"
