# torchtitan averages a tied parameter under one of its names. The output has the average under both, whatever
# chooses among the tensors and the snapshots, and so have copies of other checkpoints of the model.
exec 2>&1
titan=$fixtures/trainers/titan/checkpoint
embedding=tok_embeddings.weight output=output.weight
bytes() { "$phema" inspect --raw --tensor "$2" "$1"; } # FILE NAME
same() { cmp -s <(bytes "$1" "$2") <(bytes "$3" "$4") && echo "  $2 is $4 of ${3##*/}" || echo "  $2 differs"; }
synth() { "$phema" synth -q --no-sync --metric profile --sigma-rel 0.08 "$@" >/dev/null || echo "status $?"; }

synth "$titan" out.safetensors
same out.safetensors $output out.safetensors $embedding
cmp -s <(bytes out.safetensors $output) <(bytes "$titan/step-240" $output) && echo "raw"
"$phema" verify out.safetensors
echo "- one of the two names alone"
synth --exclude '^tok' "$titan" one.safetensors
same one.safetensors $output out.safetensors $embedding
synth --include '^output' "$titan" two.safetensors
same two.safetensors $output out.safetensors $embedding
echo "- one kind of snapshots alone"
for options in "--use averages" "--use raw" "--key ema" "--key raw"; do
    # shellcheck disable=SC2086 # two words
    synth -f $options "$titan" one.safetensors
    same one.safetensors $output one.safetensors $embedding
done
echo "- parts, and a distributed checkpoint"
for part in 1 2; do "$phema" synth -q --no-sync --metric profile --sigma-rel 0.08 --part $part/2 "$titan" parts.safetensors >/dev/null; done
"$phema" join -q --no-sync parts.safetensors >/dev/null
cmp out.safetensors parts.safetensors >/dev/null || "$phema" diff out.safetensors parts.safetensors
synth --ranks 2 "$titan" dcp/
same dcp $output out.safetensors $embedding
echo "- rules hold for both names"
synth --rule 'tok_embeddings=0.1' "$titan" rule.safetensors
synth --rule 'tok_embeddings|output=copy' "$titan" rule.safetensors
same rule.safetensors $output "$titan/step-240" ema.state.$embedding.ema_params
same rule.safetensors $output rule.safetensors $embedding
echo "- copies: the average has one name in the trainer's checkpoint, the raw parameters have two"
synth --into "$titan/step-240" "$titan" ema/
same ema ema.state.$embedding.ema_params out.safetensors $embedding
same ema $output "$titan/step-240" $output
"$phema" verify -q ema
synth --into "$titan/step-240" --key raw "$titan" raw/
same raw $output out.safetensors $embedding
same raw $embedding out.safetensors $embedding
echo "- copies of a checkpoint that has one of the names"
"$phema" synth -q --no-sync --convert "$titan/step-240" --exclude 'ema|optimizer|^output' a.safetensors >/dev/null
"$phema" synth -q --no-sync --convert "$titan/step-240" --exclude 'ema|optimizer|^tok' b.safetensors >/dev/null
synth --into a.safetensors "$titan" copy-a.safetensors
same copy-a.safetensors $embedding out.safetensors $embedding
synth --into b.safetensors "$titan" copy-b.safetensors
same copy-b.safetensors $output out.safetensors $embedding
echo "- a checkpoint where they differ in one byte: the raw parameter, by name"
cp -r "$titan" run
chmod -R u+w run
at=$("$phema" inspect --json run/step-180 | tr -d ' \n' |
    sed 's/.*"name":"output.weight",[^}]*"file":"\([^"]*\)","offset":\([0-9]*\).*/\1 \2/')
printf '\x55' | dd of="run/step-180/${at% *}" bs=1 seek=$((${at#* } + 50)) conv=notrunc 2>/dev/null
"$phema" synth --no-sync --sigma-rel 0.08 run differ.safetensors 2>&1 | grep -A 1 'tied\|averaged'
same differ.safetensors $output run/step-240 $output
