exec 2>&1
"$phema" gen --steps 7 run
echo "$?"
"$phema" gen --params 7 run
echo "$?"
"$phema" gen --count 2M --steps 3M run
echo "$?"
"$phema" gen --input-sigma 0.5 run
echo "$?"
"$phema" gen --truth 0 run
echo "$?"
"$phema" gen --input-sigma 0.1,0.1 run
echo "$?"
"$phema" gen --truth 0.1,0.1 run
echo "$?"
"$phema" gen --format pt run
echo "$?"
"$phema" gen --dtype f8 run
echo "$?"
"$phema" gen -j 2000 run
echo "$?"
ls
