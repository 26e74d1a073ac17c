"$phema" gen -q --count 2 --params 100 --no-sync run >/dev/null
for i in 1 2 3; do "$phema" synth -q --part $i/3 --sigma-rel 0.1,0.2 run sweep/; done
"$phema" join --json sweep/
"$phema" join --json sweep/
echo "status $?"
