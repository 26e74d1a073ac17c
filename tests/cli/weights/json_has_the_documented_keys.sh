"$phema" gen --count 1 run >/dev/null
"$phema" weights -q --json --sigma-rel 0.1 run | grep -o '"[a-z0-9_]*":' | tr -d '":' | tr '\n' ' '
echo
"$phema" weights -q --json --sigma-rel 0.1 --update-every 10 run | grep -o '"[a-z0-9_]*":' | tr -d '":' | tr '\n' ' '
echo
