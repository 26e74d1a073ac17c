# A journal of an earlier version, which began with an even grid and had no newest snapshot, goes on.
cat >evaluate <<'EOT'
#!/bin/sh
echo "$1" | sed -E 's/.*-([0-9.]+)\.safetensors/\1/; s/.*-newest\..*/0.3/' | awk '{ print ($1 - 0.12) ^ 2 }'
EOT
chmod +x evaluate
"$phema" gen -q --count 4 run >/dev/null
search() { "$phema" search --sigma-rel 0.02:0.25 --exec './evaluate {}' --keep none run 2>&1; }
search >/dev/null
sed -n 1,5p search/scores.csv >first_lines
{
    cat first_lines
    echo '# made [0.02, 4096, "phema-0004096-0.020.safetensors"]'
    for width in 0.02 0.0529 0.0857 0.1186 0.1514 0.1843 0.2171 0.25; do
        echo "$width" | awk '{ printf "%s,4096,%.17g,1.5,0.001\n", $1, ($1 - 0.12) ^ 2 }'
    done
} >search/scores.csv
search
grep -c '^0' search/scores.csv
