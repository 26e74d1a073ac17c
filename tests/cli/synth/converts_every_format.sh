# Converts a checkpoint of every format that is read, to a plain and a compressed file, and compares with the
# original. zstd decompresses the compressed file to the plain one, byte for byte. Two of the files hold C128,
# a dtype that safetensors lacks.
cases=("$fixtures"/safetensors/*.safetensors "$fixtures"/torch/*.{pt,pth,ckpt}
    "$fixtures"/legacy/*.{pt,pth} "$fixtures"/old/*.pt "$fixtures"/zst/*.{zst,safetensors}
    "$fixtures"/sharded{,/*.index.json} "$fixtures"/dcp/{one,two}_rank{,s}
    "$fixtures"/edm2/snapshots/*-0000004-0.050.pkl "$fixtures"/edm2/reconstructed/*-0.070.pkl
    "$fixtures"/{ema_pytorch,posthoc_ema}/snapshots/0.100.pt "$fixtures"/edm2_state/*-0000004.pt
    "$fixtures"/lightning/*/*"=100.ckpt")
for from in "${cases[@]}"; do
    [ -e "$from" ] || continue
    exclude=()
    case $from in */dtypes.pt) exclude=(--exclude '^c128$') ;; esac
    printf '%s: ' "${from#"$fixtures/"}"
    "$phema" synth -q --no-sync --convert "${exclude[@]}" "$from" out.safetensors >/dev/null
    "$phema" synth -q --no-sync --convert "${exclude[@]}" "$from" out.safetensors.zst >/dev/null
    "$phema" diff "$from" out.safetensors | sed '/^rel_l2/d'
    zstd -qdf out.safetensors.zst -o plain && cmp plain out.safetensors
    rm -f out.* plain
done
