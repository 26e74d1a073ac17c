# A truth and a snapshot of the same width and time are the same average of the same training.
"$phema" gen --count 2 --steps 64 --input-sigma 0.1 --truth 0.1,0.05 run >/dev/null
"$phema" diff run/snapshot-0000064-0.100.safetensors run/truth/truth-0000064-0.100.safetensors
"$phema" diff -q run/snapshot-0000064-0.100.safetensors run/truth/truth-0000064-0.050.safetensors
echo "$?"
