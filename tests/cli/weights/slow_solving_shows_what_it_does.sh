# After a second a terminal shows the stage and its time; nothing of it stays.
command -v script >/dev/null || { echo "script is not installed" >&2; exit 77; }
"$phema" gen -q --count 2 --steps 64 --params 200 --tensors 2 run >/dev/null
"$phema" weights -q --json --sigma-rel 0.1 run >w.json
mkfifo slow
{ sleep 1.5; cat w.json; } >slow &
at_columns 70 "$phema" weights --weights slow run | tr '\r' '\n' >out
grep -o 'solving for the weights, 1 s' out | head -n 1
grep -c 'error' out
