# A command after "try:" adds what is missing, and changes what is wrong; what the user said of the snapshots stays.
"$phema" gen -q --count 4 --params 60 --tensors 2 --input-profile raw run >/dev/null
mkdir dit
for file in run/*.safetensors; do
    LC_ALL=C sed 's/posthoc_ema[.]/posthoc_nil./g' "$file" >"dit/${file:13:7}.safetensors"
done
synth() { "$phema" synth -q --sigma-rel 0.1 "$@" out.safetensors 2>&1 | grep '^  try'; }
synth dit
synth --input-profile ema:decay=0.9999 dit
synth --input-sigma 0.05 dit
synth --name-regex 'x(?<time>[0-9]+)' --input-profile ema:decay=0.9999 dit
echo "- files without widths"
library=$fixtures/posthoc_ema/snapshots
synth "$library"
synth --input-sigma 0.05,0.2 "$library"
synth --update-every 7 "$library"
synth --input-profile power:sigma=0.2 --input-profile power:sigma=0.1 "$library"
echo "- options that choose no tensor"
synth --include weight --exclude w run
synth --include nothing --exclude bias run
synth --include bias --exclude weight --exclude bias run
synth --include nothing --exclude . run
