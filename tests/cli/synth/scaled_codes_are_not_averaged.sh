# fixtures/scaled: F8 tensors with scales. Codes and scales are never averaged separately; both may be copied,
# excluded, converted and inspected. F8 tensors without scales are averaged like any others.
try() {
    "$phema" "$@" >out 2>err
    echo "$? $(grep '^posthoc-ema:' err)"
}
weight='^model.layers.0.mlp.up_proj'
for kind in block channel none; do
    series=$fixtures/scaled/$kind
    for verb in synth weights plan; do
        out=()
        [ $verb = synth ] && out=(--no-sync "$kind.safetensors")
        try "$verb" --sigma-rel 0.1 "$series" "${out[@]}"
    done
done
ls -- *.safetensors

series=$fixtures/scaled/channel
newest=$series/snapshot-0003000-0.050.safetensors
try synth --no-sync --sigma-rel 0.1 --rule "$weight=copy" "$series" copied.safetensors
"$phema" diff copied.safetensors "$newest" | sed 's/^[0-9. ]*//'
try synth --no-sync --sigma-rel 0.1 --rule "weight_scale=copy" "$series" half.safetensors
try synth --no-sync --sigma-rel 0.1 --exclude "$weight" "$series" without.safetensors
try synth --no-sync --sigma-rel 0.1 --exclude scale "$series" half.safetensors
try synth --no-sync --convert "$newest" converted.safetensors
try diff converted.safetensors "$newest"
try inspect "$series"
try inspect "$newest"
