# While parts are unfinished the status is 1 and nothing changes. join checks all outputs before it
# publishes the first.
"$phema" gen -q --count 2 --params 5k --no-sync run >/dev/null
join() {
    "$phema" join "$@"
    echo "status $?"
}
exec 2>&1
for i in 1 4 5 7; do "$phema" synth -q --part $i/8 --sigma-rel 0.1 run out.safetensors; done
join out.safetensors
: >out.safetensors.part-2-of-8
join out.safetensors
flock -x out.safetensors.part-5-of-8 "$phema" join out.safetensors
flock -s out.safetensors.partial "$phema" join out.safetensors
for i in 2 3 6 8; do "$phema" synth -q --part $i/8 --sigma-rel 0.1 run out.safetensors; done
echo "- a part that is being written again"
flock -x out.safetensors.part-5-of-8 "$phema" join out.safetensors
flock -s out.safetensors.partial "$phema" join out.safetensors
echo "- two outputs, one of them not done"
for i in 1 2; do "$phema" synth -q --part $i/2 --sigma-rel 0.1,0.2 run sweep/; done
: >sweep/phema-0004096-0.200.safetensors.part-2-of-2
join out.safetensors sweep
ls . sweep
echo "- all of them done"
"$phema" synth -q --part 2/2 --sigma-rel 0.1,0.2 run sweep
join out.safetensors sweep
ls . sweep
