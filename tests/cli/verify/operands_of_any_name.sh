# The command in a provenance makes the same output again for any names of snapshots. Names look like options,
# numbers or lists, have blanks, quotes and line feeds, or are not UTF-8. The case covers every verb that
# writes a provenance.
"$phema" gen -q --count 2 run >/dev/null
check() {
    "$phema" verify -q "$@" | sed 's/.*: equal:.*/equal/'
    echo "status ${PIPESTATUS[0]}"
}
# shellcheck disable=SC2016 # a name, and no command
for name in -dash --dash -1 --sigma-rel=0.3 12 0.1 'a b' "it's" 'a\b' $'a\nb' '$(touch bad)' '*' - \
    $'\xff\xfe' $'caf\xe9' $'a\xc2\x9bb'; do
    printf '%q: ' "$name"
    cp -r run ./"$name"
    "$phema" synth -q --sigma-rel 0.1 -- "$name" out.safetensors >/dev/null
    check out.safetensors
    "$phema" inspect --json out.safetensors | iconv -f UTF-8 -t UTF-8 >/dev/null || echo "is no UTF-8"
    rm -r out.safetensors ./"$name"
done
echo "- lists, manifests, files, tables and templates"
mkdir -- $'-\xff'
for f in run/*.safetensors; do
    f=${f##*/}
    ln -s -- "../run/$f" ./$'-\xff'/"${f/snapshot/$'snap\xff'}"
done
ls -d -- $'-\xff'/*.safetensors >$'-list\xff'
printf '1 0\n2048 0.3\n4096 0.4\n' >$'-table\xff'
cp run/snapshot-0004096-0.050.safetensors ./$'-template\xff.safetensors'
"$phema" synth -q --sigma-rel 0.1 -- @$'-list\xff' list.safetensors >/dev/null
check list.safetensors
"$phema" synth -q --profile table:$'-table\xff' --into $'-template\xff.safetensors' run table.safetensors >/dev/null
check table.safetensors
"$phema" weights -q --json --sigma-rel 0.1 -- $'-\xff' >$'-w\xff'
iconv -f UTF-8 -t UTF-8 ./$'-w\xff' >/dev/null || echo "is no UTF-8"
grep -m 1 -o '"file": "[^"]*", "file_bytes": "[^"]*"' ./$'-w\xff'
"$phema" synth -q --weights $'-w\xff' -- $'-\xff' $'-out\xff.safetensors' | od -An -c | head -n 1
check -- $'-out\xff.safetensors'
"$phema" synth -q --weights $'-w\xff' --skip-existing -- $'-\xff' $'-out\xff.safetensors'
"$phema" verify --json -- $'-out\xff.safetensors' | grep file
"$phema" inspect -q --json -- $'-\xff' | iconv -f UTF-8 -t UTF-8 | grep -c '"file_bytes": "snap%FF'
echo "- search and join"
"$phema" search -q --sigma-rel 0.05,0.1 --tolerance 0.5 --exec 'wc -c {}' --score-regex '[0-9]+' -- \
    $'-\xff' $'-found\xff' >/dev/null
check -- $'-found\xff'/*.safetensors
for part in 1 2; do
    "$phema" synth --part $part/2 --sigma-rel 0.1 -- $'-\xff' -joined.safetensors 2>&1 | grep -o 'posthoc-ema join.*'
done
"$phema" join -q ./-joined.safetensors >/dev/null
check -- -joined.safetensors
