# The averages are the same; only the metadata differ.
"$phema" gen --count 1 --steps 40 --update-every 10 --input-sigma 0.1 said >/dev/null
"$phema" gen --count 1 --steps 40 --update-every 10 --input-sigma 0.1 --hide-update-every hidden >/dev/null
file=snapshot-0000040-0.100.safetensors
"$phema" diff said/$file hidden/$file && echo same
"$phema" inspect said/$file | grep '^  posthoc_ema'
"$phema" inspect hidden/$file | grep '^  posthoc_ema'
