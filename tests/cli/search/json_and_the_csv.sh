# The result is one object, and plot sweep reads scores.csv.
"$phema" gen -q --count 4 run >/dev/null
"$phema" search -q --json --sigma-rel 0.05,0.1,0.2 --tolerance 0.5 \
    --exec "sh -c 'echo \"\$1\" | sed s/newest/0.01/' sh {}" \
    --score-regex '(0\.[0-9]+)\.safetensors$' --maximize run |
    sed -E 's/"(seconds|predicted_error)": [^,}]*/"\1": @/g; s/("distance": 0\.[0-9]{4})[0-9]*/\1/'
"$phema" plot sweep --maximize search/scores.csv -o sweep.csv
tail -n 3 sweep.csv
# the command waits for its own line: a slow pass over the snapshots has lines with a time, too
"$phema" search --progress json --sigma-rel 0.05,0.1,0.2 --tolerance 0.5 \
    --exec "sh -c 'until grep -qs evaluation said; do sleep 0.05; done; echo \"\$1\"' sh {}" \
    --score-regex '(0\.[0-9]+)\.safetensors$' --evaluations 3 run slow 2>said >/dev/null
grep '"evaluation"' said | head -n 1 |
    sed -E 's/"elapsed_seconds":[0-9.]*/"elapsed_seconds":@/'
