"$phema" gen --count 2 --steps 100 run >/dev/null
cat >run/m.json <<END
{"snapshots": [
  {"file": "snapshot-0000100-0.050.safetensors", "time": 100, "sigma_rel": 0.05},
  {"file": "../run/snapshot-0000050-0.050.safetensors", "time": 50, "sigma_rel": 0.05}]}
END
# Paths are relative to the manifest, wherever the command runs.
"$phema" weights -q --sigma-rel 0.06 run/m.json
"$phema" synth -q --sigma-rel 0.06 run/m.json out.safetensors
