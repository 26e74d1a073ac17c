# The averages were updated every 10 steps, and their files do not record that. A run that trusts the labels and
# weighs the snapshots as the paper does gives something else.
"$phema" gen --count 20 --steps 4000 --update-every 10 --hide-update-every --truth-dtype f64 \
    --truth 0.03,0.05,0.1,0.15,0.2,0.25,0.28 run >/dev/null
error_of() { # options of synth
    "$phema" synth -q --force --no-sync "$@" run out.safetensors >/dev/null
    "$phema" diff --json out.safetensors "$truth" | sed -n 's/^ "rel_l2": \(.*\),$/\1/p'
}
for truth in run/truth/*; do
    sigma=${truth##*-}
    sigma=${sigma%.safetensors}
    right=$(error_of --sigma-rel "$sigma" --update-every 10 --metric walk)
    wrong=$(error_of --sigma-rel "$sigma" --metric profile --checks off)
    awk -v sigma="$sigma" -v right="$right" -v wrong="$wrong" 'BEGIN {
        print sigma (right < 4e-3 ? " good" : " bad: " right) (wrong > 20 * right ? "" : ", but " wrong)
    }'
done
