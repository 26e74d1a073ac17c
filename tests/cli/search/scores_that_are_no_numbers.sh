# NaN and infinity count as the worst scores and stay in scores.csv. If all scores are such, there is no best.
"$phema" gen -q --count 4 run >/dev/null
cat >evaluate <<'EOT'
#!/bin/sh
case $1 in
*-0.050.*) echo nan ;;
*-0.200.*) echo -inf ;;
*) echo 3 ;;
esac
EOT
chmod +x evaluate
"$phema" search --sigma-rel 0.05,0.1,0.2 --tolerance 0.5 --exec './evaluate {}' run 2>&1
grep '^0' search/scores.csv | cut -d, -f1-3
"$phema" search --sigma-rel 0.05,0.1,0.2 --tolerance 0.5 --exec 'echo NaN {}' \
    --score-regex 'NaN' run nothing
echo "status $?"
ls nothing
