# Formats without metadata have their provenance in FILE.json.
mkdir run
cp "$fixtures"/lightning/stds_emas/* run
cp "run/epoch=1-step=200.ckpt" "run/average-step=300.ckpt"
echo '{"posthoc_ema.provenance": {"version": 1}}' >"run/average-step=300.ckpt.json"
"$phema" weights --sigma-rel 0.07 run 2>&1
# Any other file of that name has no effect.
for text in '{"provenance": {}}' '["posthoc_ema.provenance"]' '"posthoc_ema.provenance"' '{' ''; do
    printf '%s' "$text" >"run/average-step=300.ckpt.json"
    "$phema" weights --sigma-rel 0.07 run 2>&1
done
rm run/*.json
mkfifo "run/average-step=300.ckpt.json"
"$phema" weights --sigma-rel 0.07 run 2>&1

# Outputs of several files have the provenance in the first file.
"$phema" gen --count 2 --steps 100 --tensors 1 own >/dev/null
"$phema" synth -q --no-sync --sigma-rel 0.07 own out.safetensors >/dev/null
mkdir own/snapshot-0000300-0.100
mv out.safetensors own/snapshot-0000300-0.100/model-00001.safetensors
name=$("$phema" inspect --json own/snapshot-0000300-0.100/model-00001.safetensors | sed -n 's/.*"name": "\([^"]*\)".*/\1/p')
echo "{\"weight_map\": {\"$name\": \"model-00001.safetensors\"}}" \
    >own/snapshot-0000300-0.100/model.safetensors.index.json
"$phema" weights --sigma-rel 0.07 own 2>&1

# The same holds for outputs that synth writes among the snapshots.
mkdir ldm
cp "$fixtures"/lightning/ldm/* ldm
"$phema" synth -q --no-sync --input-sigma 0.1 --sigma-rel 0.1 ldm ldm/average-step=200.ckpt
"$phema" weights --input-sigma 0.1 --sigma-rel 0.1 ldm 2>&1 | grep -e snapshot -e left
