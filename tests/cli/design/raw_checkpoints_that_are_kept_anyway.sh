# Raw checkpoints that a training keeps anyway make averages better, as much as is predicted, within a
# factor 2. A manifest names both kinds.
widths=0.05,0.08,0.12,0.2
ask() {
    "$phema" design -q --until 2000 --model 40k --disk 80k --sigma-rel $widths "$@"
}
ask -o without.json >/dev/null
ask --raw-every 250 -o with.json | sed 2q
"$phema" gen --progress none --no-sync --design with.json --motion walk --params 10k --truth $widths run
{
    printf '{"unit": "steps", "snapshots": [\n'
    for file in run/snapshot-*; do
        time=$(sed -E 's/.*snapshot-0*([0-9]+)-.*/\1/' <<<"$file")
        width=$(sed -E 's/.*-([0-9.]+|raw)\.safetensors/\1/' <<<"$file")
        case $width in
        raw) profile='"profile": "raw"' ;;
        *) profile="\"sigma_rel\": $width" ;;
        esac
        printf '%s{"file": "%s", "time": %s, %s}' "${comma-}" "$file" "$time" "$profile"
        comma=$',\n'
    done
    printf ']}\n'
} >both.json
"$phema" synth -q --no-sync --sigma-rel $widths both.json out/ >/dev/null
for truth in run/truth/*; do
    name=${truth##*/}
    "$phema" diff "out/phema-${name#truth-}" "$truth" | tail -n 1
done >diffs
error() { # of a design
    grep -oE '"worst_error": ?[0-9.e-]+' "$1" | head -n 1
}
{ error without.json && error with.json && cat diffs; } | awk '{ value[NR] = $(NR < 3 ? 2 : 1) + 0 }
    END {
        for (i = 3; i <= NR; i++)
            worst = value[i] > worst ? value[i] : worst
        print (value[1] > 2 * value[2] ? "twice as good," : value[1] / value[2]), (worst > value[2] / 2 && worst < 2 * value[2] ? "as predicted" : worst / value[2])
    }'
echo '{"until": 100, "dtype": "f32", "times": [20, 50], "averages": [{"sigma_rel": 0.1}], "raw_every": 200}' >bad.json
"$phema" gen -q --design bad.json again 2>&1
