# Averages as torchtitan, Cosmos and Lightning keep them: what is made of them is as near to the truth as was
# predicted, and the series is not doubted.
for spec in titan titan:fraction=0.08,start=21,every=4,bias=2 titan:0.1,counting=floor,start=40 cosmos \
    cosmos:shift=500 lightning:decay=0.998 lightning:decay=0.99,every=7,start=100; do
    rm -rf run
    "$phema" gen -q --input-profile "$spec" --count 24 --truth 0.15 run >/dev/null
    "$phema" synth -qf --sigma-rel 0.15 --max-error 2e-3 run out.safetensors >/dev/null
    wanted=$("$phema" weights --json -q --sigma-rel 0.15 run | sed -n 's/.*"total": \([^,}]*\).*/\1/p')
    error=$("$phema" diff --json out.safetensors run/truth/* | sed -n 's/^ "rel_l2": \([^,]*\).*/\1/p')
    awk -v spec="$spec" -v wanted="$wanted" -v error="$error" 'BEGIN {
        is_near = error < 3 * wanted && error > wanted / 3
        print spec, (is_near ? "as predicted" : wanted " " error) }'
done
