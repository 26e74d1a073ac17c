# search refuses another command, other options and other snapshots, until --force starts afresh.
"$phema" gen -q --count 4 run >/dev/null
search() { "$phema" search -q --sigma-rel 0.05,0.1 --tolerance 0.5 "$@"; }
search --exec 'echo 1 {}' --score-regex '^1' run
search --exec 'echo 2 {}' --score-regex '^2' run
echo "status $?"
search --exec 'echo 1 {}' --score-regex '^1' --metric profile run
echo "status $?"
rm run/snapshot-0001024-0.050.safetensors
search --exec 'echo 1 {}' --score-regex '^1' run
echo "status $?"
search --exec 'echo 2 {}' --score-regex '^2' --force run
ls search
printf 'sigma_rel,score\n0.1,2\n' >search/scores.csv
search --exec 'echo 2 {}' --score-regex '^2' run
echo "status $?"
