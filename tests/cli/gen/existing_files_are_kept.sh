exec 2>&1
"$phema" gen --count 1 --steps 8 run
"$phema" gen --count 2 --steps 8 --seed 1 run
echo "$?"
find run | sort
"$phema" gen --count 2 --steps 8 --seed 1 --force run
echo "$?"
"$phema" gen --count 2 --steps 8 --seed 1 fresh >/dev/null
diff -r run fresh && echo replaced
touch file
"$phema" gen file
echo "$?"
"$phema" gen no/such/parent
echo "$?"
ls
