# Candidates take the form of the snapshots, or the form that their names give. Each candidate is a
# checkpoint, and search removes it when it is not the best.
cat >evaluate <<'EOT'
#!/bin/sh
"$phema" inspect --json "$1" | sed -n 's/^ "format": "\(.*\)",$/\1/p' >>forms
basename "$1" | sed -E 's/newest/0.9/; s/^[a-z]*-[0-9]*-(0\.[0-9]+).*/\1/'
EOT
chmod +x evaluate
export phema
search() {
    "$phema" search -q --sigma-rel 0.05,0.1,0.2 --tolerance 0.5 --batch 2 --exec './evaluate {}' "$@"
    sort -u forms
    rm forms
}
"$phema" gen -q --count 2 run >/dev/null
search run 'names/x-{time}-{sigma}.safetensors.zst'
search --shard-size 20k run sharded
search --into "$fixtures/edm2/snapshots/network-snapshot-0000016-0.100.pkl" \
    "$fixtures/edm2/snapshots" pickles
find names sharded pickles | LC_ALL=C sort
