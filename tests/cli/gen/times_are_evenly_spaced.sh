"$phema" gen --count 3 --steps 10 --input-sigma 0.1,0.125,0.0625 --truth 0.05,0.25 --raw --params 8 run >/dev/null
find run -type f | sort
"$phema" inspect -qv run | sed -n '/^file/,/^$/p'
