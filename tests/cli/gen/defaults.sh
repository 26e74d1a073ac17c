"$phema" gen run
find run | sort
"$phema" inspect run/snapshot-0004096-0.050.safetensors
