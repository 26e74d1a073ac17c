exec 2>&1
"$phema" gen --count 2 --steps 100 --input-sigma 0.1,0.123456 run >/dev/null
# A name has fewer digits than the metadata; the metadata count.
mv run/snapshot-0000050-0.123456.safetensors run/snapshot-0000050-0.123.safetensors
mv run/snapshot-0000100-0.123456.safetensors run/snapshot-0000100-0.12.safetensors
"$phema" weights -q --json --sigma-rel 0.1 run | grep -o '"sigma_rel": 0.123[0-9]*'
mv run/snapshot-0000050-0.123.safetensors run/snapshot-0000050-0.124.safetensors
"$phema" weights --sigma-rel 0.1 run
echo "$?"
mv run/snapshot-0000050-0.124.safetensors run/snapshot-0000051-0.123.safetensors
"$phema" weights --sigma-rel 0.1 run
echo "$?"
