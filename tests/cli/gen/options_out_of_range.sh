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
for at in 4096 0 1.5 x 10,20 10,counter; do
    "$phema" gen --reset-at "$at" --reset-at 10 run
    echo "$?"
done
"$phema" gen --reset-at 10 --input-profile window:20 run
echo "$?"
ls
