"$phema" gen --count 1 --steps 20 --input-sigma 0.1 --update-every 5 --raw --tensors 1 --params 4 run >/dev/null
for file in snapshot-0000020-0.100 snapshot-0000020-raw truth/truth-0000020-0.100; do
    "$phema" inspect run/$file.safetensors | grep '^  posthoc_ema'
    echo
done
