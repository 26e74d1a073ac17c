# The first sentence of the page: the widths that come out well, the best score, or that the series is wrong.
"$phema" gen -q --count 16 run >/dev/null
found() { "$phema" report -q "$@" -o page.html --force >/dev/null && sed -n 's/<p class="found">\(.*\)<\/p>/\1/p' page.html; }
found run
printf '0.05,3\n0.1,-2.5\n0.15,1\n' >scores.csv
found --scores scores.csv run
found --scores scores.csv --maximize run
"$phema" gen -q --count 2 --steps 64 few >/dev/null
found --metric walk few
# No width is known: there is nothing to say.
"$phema" inspect -q --json "$fixtures/ema_pytorch/snapshots" | sed -n 's/.*"file": "\(0[^"]*\)".*/\1 1/p' >list
found --weights list "$fixtures/ema_pytorch/snapshots"
# Two times under each other's names.
LC_ALL=C sed -i 's/posthoc_ema\./posthoc_xxx./g' run/*.safetensors
for sigma in 0.050 0.100; do
    mv "run/snapshot-0003840-$sigma.safetensors" kept
    mv "run/snapshot-0004096-$sigma.safetensors" "run/snapshot-0003840-$sigma.safetensors"
    mv kept "run/snapshot-0004096-$sigma.safetensors"
done
found run
