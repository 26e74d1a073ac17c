exec 2>&1
for file in zst/single.safetensors.zst zst/pzstd.safetensors.zst; do
    "$phema" inspect "$fixtures/$file"
    echo "$?"
done
printf '\200\004}.' >settings.pkl
"$phema" inspect settings.pkl
echo "$?"
mkdir dcp
touch dcp/.metadata
"$phema" inspect dcp
echo "$?"
