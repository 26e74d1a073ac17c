# Leftovers of another plan are refused: the message names the files to remove, and nothing changes. A new plan
# begins where no part is left and no run writes.
"$phema" gen -q --count 3 --params 30k --no-sync run >/dev/null
run() {
    "$phema" synth -q "$@"
    echo "status $?"
}
run --part 1/2 --sigma-rel 0.1 run out.safetensors
cp out.safetensors.part-1-of-2 kept
echo "- another width, dtype, number of parts"
run --part 2/2 --sigma-rel 0.11 run out.safetensors
run --part 2/2 --sigma-rel 0.1 --dtype f16 run out.safetensors
run --part 2/3 --sigma-rel 0.1 run out.safetensors
echo "- a snapshot that has changed since"
touch -d '2020-01-01' run/snapshot-0004096-0.050.safetensors
run --part 2/2 --sigma-rel 0.1 run out.safetensors
echo "- no part, but all"
run --sigma-rel 0.1 run out.safetensors
run --sigma-rel 0.1 --force run out.safetensors
echo "- as one does"
cmp kept out.safetensors.part-1-of-2
ls
rm out.safetensors.part-* kept
for i in 1 2; do run --part $i/2 --sigma-rel 0.11 run out.safetensors; done
"$phema" join -q out.safetensors
run --sigma-rel 0.11 run whole.safetensors
cmp out.safetensors whole.safetensors && echo "same"
echo "- published since"
run --part 1/2 --sigma-rel 0.11 run out.safetensors
run --part 1/2 --sigma-rel 0.11 --force run out.safetensors
rm out.safetensors.part*
echo "- while an ordinary run writes it, and while another run writes this part"
: >held.safetensors.partial
flock -x held.safetensors.partial "$phema" synth -q --part 1/2 --sigma-rel 0.1 run held.safetensors
ls held*
flock -s held.safetensors.partial "$phema" synth -q --sigma-rel 0.1 run held.safetensors
: >held.safetensors.part-1-of-2
flock -x held.safetensors.part-1-of-2 "$phema" synth -q --part 1/2 --sigma-rel 0.1 run held.safetensors
run --part 2/2 --sigma-rel 0.1 run held.safetensors
ls held*
echo "- a sum that is too large"
echo "snapshot-0004096-0.050.safetensors 1e30" >weights
run --part 1/2 --weights weights --dtype f16 run large.safetensors 2>&1 | sed "s/tensor '.*averages/tensor: averages/"
ls large.safetensors*
