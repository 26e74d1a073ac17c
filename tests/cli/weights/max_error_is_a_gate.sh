"$phema" gen --count 2 run >/dev/null
"$phema" weights -q --sigma-rel 0.075,0.25 --max-error 0.5 run | wc -l
echo "${PIPESTATUS[0]}"
"$phema" weights -q --sigma-rel 0.075,0.25 --max-error 1e-12 run | wc -l
echo "${PIPESTATUS[0]}"
