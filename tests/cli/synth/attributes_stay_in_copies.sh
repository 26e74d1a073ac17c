# fixtures/edm2_attributes: tensors that an object keeps next to its parameters and buffers, and tensors of
# the loss and the encoder. A copy keeps those of the newest snapshot. A new file omits them, and a note says so.
cat >weights.txt <<EOF
network-snapshot-0000004-0.050.pkl 0.25
network-snapshot-0000008-0.050.pkl 0.75
EOF
newest=$fixtures/edm2_attributes/network-snapshot-0000008-0.050.pkl
run() { "$phema" "$@" 2>&1 | grep -v '^wrote '; }
run synth --no-sync --weights weights.txt "$fixtures/edm2_attributes" copy.pkl
"$phema" synth -q --no-sync --weights weights.txt "$fixtures/edm2_attributes" new.safetensors
"$phema" diff copy.pkl "$newest" | sed 's/^[0-9. ]*//'
"$phema" inspect new.safetensors | tail -n 2
"$phema" verify copy.pkl

# a conversion includes all tensors
"$phema" synth -q --no-sync --convert "$newest" all.safetensors
"$phema" diff all.safetensors "$newest"
