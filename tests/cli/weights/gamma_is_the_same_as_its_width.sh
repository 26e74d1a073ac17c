# gamma 1 is sigma_rel sqrt(2)/6
"$phema" gen --count 2 run >/dev/null
"$phema" weights -q --gamma 1 run | tail -n +2 |
    cmp - <("$phema" weights -q --sigma-rel 0.23570226039551587 run | tail -n +2) && echo same
"$phema" weights -q --gamma 1 --sigma-rel 0.1 run | head -n 1
