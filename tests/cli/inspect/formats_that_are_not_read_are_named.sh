exec 2>&1
for file in legacy/plain.pt old/torch113_legacy.pt zst/single.safetensors.zst zst/pzstd.safetensors.zst; do
    "$phema" inspect "$fixtures/$file"
    echo "$?"
done
printf '\200\004}.' >edm2.pkl
"$phema" inspect edm2.pkl
echo "$?"
mkdir dcp
touch dcp/.metadata
"$phema" inspect dcp
echo "$?"
