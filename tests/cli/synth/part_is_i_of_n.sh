# The values that --part accepts, the outputs that exclude it, and the messages of a part.
"$phema" gen -q --count 2 --params 100 --no-sync run >/dev/null
for part in 0/4 5/4 x '' 1 1/ /2 1/2/3 -1/2 1.5/2 '1 /2' 1/10001 18446744073709551617/18446744073709551618 1/0 0x1/2; do
    "$phema" synth -q --part="$part" --sigma-rel 0.1 run out.safetensors
    echo "status $?"
done 2>&1
ls
echo "- a part prints no path, since it publishes none"
"$phema" synth --part 2/3 --sigma-rel 0.1 run out.safetensors 2>&1 | grep -o -e '^wrote part 2 of 3,' -e '^when all.*'
"$phema" synth --part 2/3 --sigma-rel 0.1,0.2 run 'a dir/' 2>&1 | grep -o -e '^wrote part 2 of 3 of 2 averages' -e '^when all.*'
"$phema" synth --part 2/3 --sigma-rel 0.1,0.2 run 'x-{sigma}.safetensors' 2>&1 | grep '^when'
mkdir 0.100 0.200
"$phema" synth --part 2/3 --sigma-rel 0.1,0.2 run '{sigma}/x.safetensors' 2>&1 | grep '^when'
"$phema" synth -q --json --part 3/3 --sigma-rel 0.1 run out.safetensors | grep -o -e '"part.*' -e '"file": "[^"]*"'
echo "- nor does what is written say that there were parts"
"$phema" synth -q --part 1/3 --sigma-rel 0.1 run out.safetensors
"$phema" join -q out.safetensors
"$phema" inspect --json out.safetensors | grep -c -e '--part'
"$phema" join 'a dir/'
