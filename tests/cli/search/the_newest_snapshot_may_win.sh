# The newest snapshot is a candidate as it is: the raw parameters if they are stored. It may win, and its score is
# not asked for again.
cat >evaluate <<'EOT'
#!/bin/sh
echo "$1" >>asked
case $1 in
*-newest.*) echo "$newest" ;;
*) echo "$1" | sed -E 's/.*-([0-9.]+)\.safetensors/\1/' ;;
esac
EOT
chmod +x evaluate
export newest=0.03
"$phema" gen -q --count 4 --raw run >/dev/null
search() { "$phema" search --sigma-rel 0.04:0.2 --coarse 2 --exec './evaluate {}' "$@" 2>&1; }
search --input-profile raw run
ls search
"$phema" diff search/phema-0004096-newest.safetensors run/snapshot-0004096-raw.safetensors
"$phema" verify search/phema-0004096-newest.safetensors
grep -c newest asked
search --input-profile raw --keep none run | tail -n 1
grep -c newest asked
echo "- without raw parameters the narrowest of the newest; and the newest of the times that are searched"
search -q run narrowest
"$phema" diff narrowest/phema-0004096-newest.safetensors run/snapshot-0004096-0.050.safetensors
"$phema" verify narrowest/phema-0004096-newest.safetensors
search -q --at 1024,2048 run times
search -q --at 1500 run between
search -q --input-profile raw --maximize run highest
echo "- in JSON"
search --json -q --input-profile raw run json | sed -E 's/"(seconds|predicted_error)": [^,}]*/"\1": @/g' |
    grep -A8 -E '"(best|best_width|nearest)":|"newest"' | sed -E 's/("distance": 0\.[0-9]{4})[0-9]*/\1/'
echo "- with too few evaluations it is left out"
search -q --evaluations 2 run few
grep -q newest few/scores.csv || echo "not scored"
