"$phema" gen --count 3 run >/dev/null
"$phema" weights --sigma-rel 0.075,0.15,0.25 run
