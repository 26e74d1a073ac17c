# Averages whose files are gone still have weights, at any place in the series.
"$phema" gen -q --no-sync --count 4 --input-sigma 0.05 --truth 0.05 run
cat >run/first.json <<'END'
{"snapshots": [{"time": 1024, "sigma_rel": 0.05},
 {"file": "snapshot-0002048-0.050.safetensors", "time": 2048, "sigma_rel": 0.05},
 {"file": "snapshot-0003072-0.050.safetensors", "time": 3072, "sigma_rel": 0.05}]}
END
cat >run/middle.json <<'END'
{"snapshots": [{"file": "snapshot-0001024-0.050.safetensors", "time": 1024, "sigma_rel": 0.05},
 {"time": 2048, "sigma_rel": 0.05},
 {"file": "snapshot-0003072-0.050.safetensors", "time": 3072, "sigma_rel": 0.05}]}
END
for manifest in first middle; do
    "$phema" weights -qv --metric profile --sigma-rel 0.1 run/$manifest.json
done
