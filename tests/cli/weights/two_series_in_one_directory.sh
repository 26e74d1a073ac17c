exec 2>&1
"$phema" gen --count 1 --steps 8 run >/dev/null
cp run/snapshot-0000008-0.050.safetensors run/second-0000008-0.050.safetensors
"$phema" weights --sigma-rel 0.1 run
echo "$?"
"$phema" weights -qv --sigma-rel 0.1 --name-regex '^second-(?<time>[0-9]+)-(?<sigma>[0-9.]+)\.safetensors' run
