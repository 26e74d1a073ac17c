# The damaged byte is the last of the checksum, which covers all tensors. The content must be safetensors.
exec 2>&1
head -c -1 "$fixtures/zst/unknown_size.safetensors.zst" >damaged.safetensors.zst
printf 'x' >>damaged.safetensors.zst
"$phema" inspect --quiet damaged.safetensors.zst >/dev/null
echo "$?"
"$phema" diff damaged.safetensors.zst "$fixtures/zst/content.safetensors"
echo "$?"
head -c -1 "$fixtures/zst/single.safetensors.zst" >damaged.safetensors.zst
printf 'x' >>damaged.safetensors.zst
"$phema" inspect --raw --tensor layer5.weight damaged.safetensors.zst >/dev/null
echo "$?"
zstd -q -c "$fixtures/torch/plain.pt" >plain.pt.zst
"$phema" inspect plain.pt.zst
echo "$?"
head -c 29000 "$fixtures/zst/content.safetensors" | zstd -q -c >short.safetensors.zst
"$phema" inspect --raw --tensor step short.safetensors.zst >/dev/null
echo "$?"
"$phema" inspect --raw --tensor layer5.weight short.safetensors.zst >/dev/null
echo "$?"
