# Sums are float32 where float16 hides the difference, and float64 elsewhere. The choice depends on the tensor and
# the target, not on the other outputs of the run.
"$phema" gen -q --count 24 --dtype f16 --no-sync run >/dev/null
paper=(-q --no-sync --metric profile --ridge none)
"$phema" synth "${paper[@]}" --sigma-rel 0.01,0.11,0.13,0.2 run auto/ >/dev/null
for sigma in 0.010 0.110 0.130 0.200; do
    name=phema-0004096-$sigma.safetensors
    "$phema" synth "${paper[@]}" --sigma-rel $sigma run alone/ >/dev/null
    cmp "auto/$name" "alone/$name" && echo "$sigma alone: same"
    for precision in f32 f64; do
        "$phema" synth "${paper[@]}" --accumulate $precision --sigma-rel $sigma run $precision/ >/dev/null
        "$phema" diff -q "auto/$name" "$precision/$name" >/dev/null && echo "$sigma: as with $precision"
    done
    "$phema" verify "auto/$name"
done
echo "- written as float32 the sums are float64"
for precision in auto f32 f64; do
    "$phema" synth "${paper[@]}" --dtype f32 --accumulate $precision --sigma-rel 0.13 run wide-$precision.safetensors >/dev/null
done
"$phema" diff -q wide-auto.safetensors wide-f64.safetensors >/dev/null && echo "as with f64"
"$phema" diff -q wide-auto.safetensors wide-f32.safetensors >/dev/null || echo "f32 differs"
echo "- the record counts, where the command does not say: of a version that always summed in float64"
"$phema" synth "${paper[@]}" --accumulate f64 --sigma-rel 0.2 run old.safetensors >/dev/null
LC_ALL=C sed -i 's/--accumulate f64/--metric profile/' old.safetensors
"$phema" verify old.safetensors
"$phema" synth "${paper[@]}" --sigma-rel 0.2 run new.safetensors >/dev/null
"$phema" diff -q old.safetensors new.safetensors >/dev/null || echo "which auto is not"
