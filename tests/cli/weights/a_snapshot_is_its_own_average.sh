# If a snapshot has the target's width and time, the solver uses it alone (other weights are below 1e-9).
"$phema" gen --count 3 run >/dev/null
"$phema" weights -q --json --sigma-rel 0.05,0.1 --at 2730,4096 --ridge none run | grep -o '"weights": .*]' |
    tr -d '],[' | awk '{ for (i = 2; i <= NF; i++) { x = $i + 0; sub(/.*/, (x > 1 - 1e-9 && x < 1 + 1e-9) ? 1 : (x > -1e-9 && x < 1e-9) ? 0 : x, $i) } } { print }'
