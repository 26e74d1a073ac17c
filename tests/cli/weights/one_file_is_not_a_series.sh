exec 2>&1
"$phema" weights --sigma-rel 0.1 "$fixtures/torch/plain.pt"
echo "$?"
"$phema" weights --sigma-rel 0.1 missing
echo "$?"
mkdir empty
"$phema" weights --sigma-rel 0.1 empty
echo "$?"
"$phema" weights --sigma-rel 0.1 --layout keras empty
echo "$?"
"$phema" weights --sigma-rel 0.1 --layout manifest empty
echo "$?"
