"$phema" gen --count 2 --steps 100 run >/dev/null
"$phema" synth -q --sigma-rel 0.07,0.2 run run/ >/dev/null
"$phema" weights --sigma-rel 0.07 run
