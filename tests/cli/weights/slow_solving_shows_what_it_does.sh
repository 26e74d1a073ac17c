# After a second a terminal shows the stage and its time; nothing of it stays. The weights come when that was shown.
command -v script >/dev/null || { echo "script is not installed" >&2; exit 77; }
"$phema" gen -q --count 2 --steps 64 --params 200 --tensors 2 run >/dev/null
"$phema" weights -q --json --sigma-rel 0.1 run >w.json
mkfifo slow
shown='solving for the weights, [0-9]* s'
{
    for ((i = 0; i < 5000; i++)); do grep -q "$shown" out && break; sleep 0.02; done
    cat w.json
} >slow &
at_columns 70 "$phema" weights --weights slow run >out
grep -o "$shown" out | sed 's/[0-9]* s/N s/' | sort -u
grep -c 'error' out
