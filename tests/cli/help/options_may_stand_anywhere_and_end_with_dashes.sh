exec 2>&1
"$phema" gen --count 1 --steps 4 --params 8 --tensors 1 -- --run >/dev/null
"$phema" inspect -qv -- --run | sed -n '/^file/,/^$/p'
"$phema" weights -- --run -q --sigma-rel 0.05
echo "$?"
"$phema" weights -q ./--run --sigma-rel 0.05 | cut -c 1-34
