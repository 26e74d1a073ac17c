"$phema" gen --count 4 run >/dev/null
"$phema" weights --sigma-rel 0.15 --at 2048 run
