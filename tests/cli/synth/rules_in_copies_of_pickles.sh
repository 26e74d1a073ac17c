# A copy of a checkpoint keeps the tensors that a rule copies; the JSON next to it records the rules. Tied tensors
# cannot follow different rules.
set -e
snapshots=$fixtures/edm2/snapshots
synth() { "$phema" synth -q --no-sync "$@"; }
synth --sigma-rel 0.1 --rule 'blocks=0.2' --rule 'label|gain=copy' "$snapshots" out.pkl
for sigma in 0.1 0.2; do synth --sigma-rel $sigma "$snapshots" plain-$sigma.pkl >/dev/null; done
same() { # file, expression
    synth --force --convert --include "$2" out.pkl a.safetensors >/dev/null
    synth --force --convert --include "$2" "$1" b.safetensors >/dev/null
    "$phema" diff -q a.safetensors b.safetensors >/dev/null && echo "$2: as in $(basename "$1")"
}
same plain-0.2.pkl blocks
same "$snapshots/network-snapshot-0000016-0.100.pkl" 'label|gain'
same plain-0.1.pkl 'ema\.(fourier|emb|out\.)'
grep -o '"rules": *\[{"pattern":"[^"]*","tensors":[0-9]*' out.pkl.json
# a copy of another checkpoint receives the copied tensors that it lacks
synth --sigma-rel 0.1 --rule 'blocks=0.2' --rule 'label|gain=copy' \
    --into "$snapshots/network-snapshot-0000004-0.050.pkl" "$snapshots" into.pkl
synth --force --convert out.pkl a.safetensors >/dev/null
synth --force --convert into.pkl b.safetensors >/dev/null
"$phema" diff -q a.safetensors b.safetensors >/dev/null && echo "into another: the same"

for t in 1 2; do cp "$fixtures/torch/module_state_dict.pth" x-$t.pth; done
echo '{"snapshots": [{"file": "x-1.pth", "time": 1, "sigma_rel": 0.1},
    {"file": "x-2.pth", "time": 2, "sigma_rel": 0.1}]}' >run.json
synth --sigma-rel 0.1 --rule '^lin\.weight=0.2' run.json tied.pth || echo "status $?"
synth --sigma-rel 0.1 --rule '\.weight=0.2' run.json tied.pth
