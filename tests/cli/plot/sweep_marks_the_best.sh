# The lowest score is the best, or with --maximize the highest. A note counts the lines without a score.
printf 'sigma_rel,score\n0.2,2.5\n0.1,2.25\n0.15,2\n0.25,nan\n' >scores.csv
"$phema" plot sweep scores.csv -o sweep.csv && cat sweep.csv
"$phema" plot sweep --maximize --quiet scores.csv -o most.csv --json && tail -n 1 most.csv
"$phema" plot sweep --quiet scores.csv -o sweep.svg
grep -oE '>[^<>]+</text>' sweep.svg | sed -E 's/^>|<\/text>$//g'
