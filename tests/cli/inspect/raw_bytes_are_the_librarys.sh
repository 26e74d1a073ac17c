# The bytes of each tensor in C order, also of strided tensors, must match the hashes in the listings.
# The hashes come from the libraries that wrote the files.
for file in safetensors/dtypes.safetensors safetensors/shapes.safetensors safetensors/specials.safetensors \
    safetensors/old_unaligned.safetensors torch/plain.pt torch/dtypes.pt torch/views.pt torch/nested.pt \
    torch/module_state_dict.pth torch/lightning.ckpt torch/protocol4.pt torch/bytesio.pt old/torch113_zip.pt \
    sharded/model.safetensors.index.json zst/single.safetensors.zst zst/pzstd.safetensors.zst \
    zst/seekable.safetensors.zst; do
    n=0
    while read -r hash name; do
        got=$("$phema" inspect --raw --tensor "$name" "$fixtures/$file" | sha256sum | cut -d ' ' -f 1)
        [ "$got" = "$hash" ] || echo "$file: $name: differs"
        n=$((n + 1))
    done < <(sed -n 's/.*"name": "\([^"]*\)".*"sha256": "\([0-9a-f]*\)".*/\2 \1/p' "$fixtures/$file.expected.json")
    echo "$file: $n tensors"
done
