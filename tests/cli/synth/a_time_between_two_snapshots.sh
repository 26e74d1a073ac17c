# At the time of a snapshot, later snapshots are left out. Between two snapshots they are used, and bring the
# average several times nearer. Copied tensors never come from later than the target.
"$phema" gen -q --count 10 --steps 4000 run >/dev/null
"$phema" synth --sigma-rel 0.15 --at 3600 run at.safetensors 2>&1 | grep -o '2 later snapshots left out'
"$phema" synth --sigma-rel 0.15 --at 3700 run between.safetensors 2>&1 | grep -o 'between two snapshots: later ones are used'
"$phema" weights -qv --sigma-rel 0.15 --at 3700 run | awk '/4000-0.1/ { print ($NF != 0 ? "has a weight" : "has none") }'
total() { grep -o '"total": [^,]*' | sed 's/.*: //'; }
kept=$("$phema" weights -q --json --sigma-rel 0.15 --at 3700 run | total)
dropped=$("$phema" weights -q --json --sigma-rel 0.15 --at 3600 run | total)
awk -v kept="$kept" -v at="$dropped" 'BEGIN { print (kept < 1e-2 ? "predicted well" : kept) }'
