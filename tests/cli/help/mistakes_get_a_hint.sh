# Usual mistakes: names of options and dtypes of other programs, decimal commas, a shell's glob, options before
# the verb. Short words get no far-fetched suggestion.
try() {
    echo "- $*"
    "$phema" "$@" 2>&1
    echo "status $?"
}
try synth -o out.safetensors run
try synth --std 0.1 run out.safetensors
try synth --outstd 0.1 run out.safetensors
try synth --xq run out.safetensors
try synth --sigma-rel 0 run out.safetensors
try synth --sigma-rel -0.1 run out.safetensors
try synth --sigma-rel nan run out.safetensors
try synth --sigma-rel 0,1 run out.safetensors
try synth --sigma-rel 0.1, run out.safetensors
try synth --sigma-rel 0.1 a.pkl b.pkl c.pkl out.pkl
try synth --dtype int4 run out.safetensors
try --sigma-rel 0.1 synth run
try -V
try version
"$phema" gen -q --count 2 run >/dev/null
for dtype in fp16 FP16 bfloat16 torch.bfloat16 float32; do
    "$phema" synth -q -f --sigma-rel 0.1 --dtype $dtype run out.safetensors >/dev/null
    "$phema" inspect out.safetensors | sed -n 's/^  \(B*F[0-9]*\)  *8 .*/\1/p'
done
"$phema" 2>&1 | sed -n '1p; /^Verbs/,/synth/p'
