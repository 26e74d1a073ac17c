# URLs, a conversion with a target, and outputs without parts: the command after "try:" runs, if there is one.
"$phema" gen -q --count 2 --steps 64 --params 200 --tensors 2 --no-sync run >/dev/null
for url in s3://bucket/run https://host/run "file://$PWD/run"; do
    remedy synth --no-sync --sigma-rel 0.1 "$url" out.safetensors | sed "s|$PWD|HERE|g"
done
rm -f out.safetensors
remedy inspect gs://bucket/a.safetensors
remedy diff "file://$PWD/run/snapshot-0000064-0.100.safetensors" run/snapshot-0000064-0.100.safetensors | sed "s|$PWD|HERE|g"
remedy synth --no-sync --sigma-rel 0.1 run s3://bucket/out.safetensors
remedy synth --no-sync --convert --sigma-rel 0.1 run converted.safetensors
remedy synth --no-sync --convert --sigma-rel 0.1 --at 64 run/snapshot-0000064-0.100.safetensors single.safetensors
for part in 1 2; do
    "$phema" synth -q --no-sync --sigma-rel 0.1 --part $part/2 run joined.safetensors
done
remedy join --no-sync joind.safetensors
remedy join --no-sync joined.safetensors
remedy join --no-sync run
remedy join --no-sync nothing
