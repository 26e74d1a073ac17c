# With several times, search looks for the best time as well.
cat >evaluate <<'EOT'
#!/bin/sh
echo "$1" | sed -E 's/.*-0*([0-9]+)-([0-9.]+)\.safetensors/\1 \2/' |
    awk '{ print ($2 - 0.1 - ($1 - 3072) / 40000) ^ 2 + (($1 - 3072) / 10000) ^ 2 + 1 }'
EOT
chmod +x evaluate
"$phema" gen -q --count 8 run >/dev/null
"$phema" search -q --sigma-rel 0.02:0.25 --at 2048,3072,4096 --exec './evaluate {}' run |
    awk '{ print $2, ($1 > 0.095 && $1 < 0.105), ($4 != "") }'
grep '^0' search/scores.csv | cut -d, -f2 | sort | uniq -c | awk '{ print $2, $1 >= 5 }'
[ "$(grep -c '^0' search/scores.csv)" -le 25 ] && echo few
ls search | wc -l
