exec 2>&1
"$phema" gen -q --no-sync --count 8 --input-profile window:500 --input-profile raw run >/dev/null
for at in x 0 -1 '1000,' 1000,count 4096 5000,counter; do
    "$phema" weights --sigma-rel 0.1 --reset-at "$at" run
    echo "$?"
done
"$phema" weights --sigma-rel 0.1 --reset-at 300 --reset-at 300,counter run
echo "$?"
"$phema" weights -q --sigma-rel 0.1 --reset-at 1000 run
echo "$?"
"$phema" gen -q --no-sync --count 8 --update-every 10 comb >/dev/null
"$phema" weights -q --sigma-rel 0.1 --reset-at 1000.5 comb
echo "$?"
