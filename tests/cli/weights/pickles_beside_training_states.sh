# The pickles are the series. The note has a way to use the training states, and that way works.
mkdir run
cp "$fixtures"/edm2/snapshots/*.pkl "$fixtures"/edm2_state/*.pt run
"$phema" weights --sigma-rel 0.07 run 2>&1
"$phema" weights --sigma-rel 0.07 --layout edm2 --name-regex '^training-state-(?<time>[0-9]+)[.]pt$' run 2>&1
ls run/*.pt >list.txt
"$phema" weights --sigma-rel 0.07 @list.txt 2>&1
# The training states have more digits.
"$phema" synth -q --no-sync --to 8 --sigma-rel 0.07 run half.safetensors
"$phema" synth -q --no-sync --sigma-rel 0.07 @list.txt full.safetensors
"$phema" inspect half.safetensors | grep out_gain
"$phema" inspect full.safetensors | grep out_gain
