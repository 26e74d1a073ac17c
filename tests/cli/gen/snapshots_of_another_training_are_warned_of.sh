# One directory is one series.
exec 2>&1
"$phema" gen --count 2 --steps 8 --params 100 run
"$phema" gen --count 3 --steps 300 --params 100 run
"$phema" gen --count 3 --steps 300 --params 100 -q run
"$phema" gen --count 3 --steps 300 --params 100 --raw --force fresh
"$phema" gen --count 3 --steps 300 --params 100 --raw --force fresh
