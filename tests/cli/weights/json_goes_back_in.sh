# --weights uses printed weights to the last bit.
"$phema" gen --count 4 run >/dev/null
"$phema" weights -q --json --sigma-rel 0.07,0.2 --at 3072,4096 run >once.json
"$phema" weights -q --json --weights once.json run >again.json
weights() { grep -o '"weights": \[[^]]*\]' "$1"; }
cmp <(weights once.json) <(weights again.json) && weights once.json | wc -l
grep -o '"metric": "[a-z]*"' once.json | sort | uniq -c | sed 's/^ *//'
grep -o '"metric": "[a-z]*", "ridge": [0-9a-z.]*, "solver": "[a-z]*"' again.json | sort -u
sed -n '1,/"targets"/p' again.json | cmp - <(sed -n '1,/"targets"/p' once.json)
