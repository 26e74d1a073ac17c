# If solving again gives other weights than the recorded ones, verify warns and uses the recorded ones.
"$phema" gen -q --count 4 run >/dev/null
cp run/snapshot-0004096-0.050.safetensors template.safetensors
"$phema" synth -q --sigma-rel 0.1 --into template.safetensors run out.safetensors >/dev/null
sed -i -E 's/("file":"snapshot-0001024-0.100.safetensors".*"weight":)[^,]*/\10.5/' out.safetensors.json
grep -c '"weight":0.5,' out.safetensors.json
"$phema" verify --json out.safetensors | grep -e equal -e same_weights -e tiles
echo "status ${PIPESTATUS[0]}"
