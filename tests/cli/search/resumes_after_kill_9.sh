# A search is killed while the command runs, at any point. The same search then resumes. It asks again
# only for the score that was lost, and all scores equal those of an uninterrupted search.
cat >evaluate <<'EOT'
#!/bin/sh
echo "$1" >>asked
[ "$(wc -l <asked)" != "${kill_at:-}" ] || { kill -9 $PPID; sleep 10; exit 1; }
echo "$1" | sed -E 's/.*-([0-9.]+)\.safetensors/\1/; s/.*newest.*/0.25/' | awk '{ print ($1 - 0.111) ^ 2 }'
EOT
chmod +x evaluate
"$phema" gen -q --count 4 run >/dev/null
search() { "$phema" search -q --sigma-rel 0.02:0.25 --exec './evaluate {}' run "$1"; }
search whole | sed 's/whole/@/' >expected
scores() { grep '^0' "$1/scores.csv" | cut -d, -f1-3; }
mv asked asked.whole
for at in 1 3 6 9 10 11; do
    rm -f asked
    { kill_at=$at search killed$at; } 2>/dev/null
    echo "killed: $?, $(scores killed$at | wc -l) scores"
    search killed$at | sed "s/killed$at/@/" | cmp - expected
    cmp <(scores whole) <(scores killed$at)
    echo "asked again: $(sort asked | uniq -d | sed "s/killed$at/@/" | tr '\n' ' ')"
    (cd killed$at && echo *)
done
