# The rows of a provenance have the time and profile of each snapshot. verify names a row that differs from
# the series, with both values, whatever the tensors are.
"$phema" gen -q --count 2 run >/dev/null
cp run/snapshot-0004096-0.050.safetensors template.safetensors
"$phema" synth -q --sigma-rel 0.1 --rule weight=0.05 --into template.safetensors run out.safetensors >/dev/null
"$phema" verify -q out.safetensors
cp out.safetensors.json good.json
try() { # sed expression
    sed -E "$1" good.json >out.safetensors.json
    cmp -s good.json out.safetensors.json && echo "nothing was edited"
    "$phema" verify out.safetensors
    echo "status $?"
}
row='"file":"snapshot-0002048-0.100.safetensors",'
try "s/($row)\"time\":[^,]*/\\1\"time\":2047/"
try "s/($row)\"time\":[^,]*/\\1\"time\":\"2048\"/"
try "s/($row)\"time\":[^,]*,/\\1/"
try "s/(${row}[^}]*)\"sigma_rel\":[^,]*/\\1\"sigma_rel\":0.2/"
try "s/(${row}[^}]*)\"sigma_rel\":[^,]*/\\1\"sigma_rel\":null/"
try "s/(${row}[^}]*)\"gamma\":[^,]*/\\1\"gamma\":7/"
try "s/(${row}[^}]*),\"weight\"/\\1,\"update_every\":10,\"weight\"/"
try "s/(${row}[^}]*),\"weight\"/\\1,\"profile\":\"ema:5\",\"weight\"/"
try 's/("pattern":"weight"[^}]*)"sigma_rel":[^,]*/\1"sigma_rel":0.06/'
echo "- profiles of other shapes"
"$phema" gen -q --count 2 --input-profile ema:half-life=200 --input-profile raw other >/dev/null
"$phema" synth -q -f --profile ema:half-life=300 --into template.safetensors other/manifest.json out.safetensors \
    >/dev/null
"$phema" verify -q out.safetensors
cp out.safetensors.json good.json
try 's/"profile":"raw"/"profile":"ema:half-life=2"/'
echo "- one that is there already is not up to date then"
"$phema" synth --skip-existing --profile ema:half-life=300 --into template.safetensors other/manifest.json \
    out.safetensors 2>&1 | tail -n 1
