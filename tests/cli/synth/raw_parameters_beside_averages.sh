# gen --raw also writes the parameters themselves. They are not averages, and are left out.
"$phema" gen -q --count 3 --raw run >/dev/null
"$phema" gen --json --count 3 --raw --force run
"$phema" synth --sigma-rel 0.1 run out.safetensors 2>&1 >/dev/null | grep -e 'left out' -e snapshots,
