# An output of synth is never a snapshot, whatever its name.
"$phema" gen -q --count 4 run >/dev/null
for name in avg-0004096-0.100 snapshot-0005000-0.100 x phema-0004096-0.100 a-9999999-0.050; do
    "$phema" synth -q --sigma-rel 0.1 run run/$name.safetensors >/dev/null
done
"$phema" weights --sigma-rel 0.1 run 2>&1 >/dev/null | grep -e 'left out' -e snapshots,
