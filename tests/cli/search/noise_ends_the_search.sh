# With --noise the search ends where scores differ by less than the noise, and says which widths are equally good.
cat >evaluate <<'EOT'
#!/bin/sh
echo "$1" | sed -E 's/.*-([0-9.]+)\.safetensors/\1/; s/.*-newest\..*/0.3/' | awk '{ print log($1 / 0.1) ^ 2 }'
EOT
chmod +x evaluate
"$phema" gen -q --count 4 run >/dev/null
search() { "$phema" search --sigma-rel 0.02:0.25 --exec './evaluate {}' --keep none "$@" run 2>&1; }
search | tail -n 2
search --noise 0.1 | tail -n 2
search --noise 1 | tail -n 2
echo "- it need not be the same each time"
search --noise 0.1 --force | tail -n 4
search | tail -n 2
echo "- in JSON"
search -q --noise 1 --json | grep -E '"(equal_from|equal_to|is_newest_equal|is_settled)"'
search -q --json | grep -E '"(equal_from|equal_to|is_newest_equal|is_settled)"'
