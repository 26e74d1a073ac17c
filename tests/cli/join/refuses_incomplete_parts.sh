# join refuses to join nothing, to join twice, to replace another output, and to read damaged parts.
"$phema" gen -q --count 2 --params 5k --no-sync run >/dev/null
join() {
    "$phema" join -q "$@"
    echo "status $?"
}
exec 2>&1
join
join nothing.safetensors
join run
join no/such/place
join ''
echo "- twice"
for i in 1 2; do "$phema" synth -q --part $i/2 --sigma-rel 0.1 run out.safetensors; done
join out.safetensors
join out.safetensors
echo "- over another"
cp out.safetensors before
for i in 1 2; do "$phema" synth -q --part $i/2 --force --sigma-rel 0.2 run out.safetensors; done
join out.safetensors
cmp out.safetensors before && echo "kept"
join --force --no-sync out.safetensors
cmp -s out.safetensors before || echo "replaced"
echo "- what is damaged"
for i in 1 2; do "$phema" synth -q --part $i/2 --sigma-rel 0.1 run cut.safetensors; done
truncate -s -1 cut.safetensors.partial
join cut.safetensors
rm cut.safetensors.partial
join cut.safetensors
mkdir cut.safetensors.partial
join cut.safetensors
rmdir cut.safetensors.partial
echo "- sums of what was read, for a place that is another, or no place"
both() { for i in 1 2; do "$phema" synth -q --part $i/2 --sigma-rel 0.1 run sums.safetensors; done; }
both
sed -i '0,/"at": [0-9]*/s//"at": 100/' sums.safetensors.part-2-of-2
join sums.safetensors
sed -i '0,/"at": [0-9]*/s//"at": 100/' sums.safetensors.part-1-of-2
join sums.safetensors
both
sed -i '0,/"at": [0-9]*/s//"at": 100000/' sums.safetensors.part-2-of-2
join sums.safetensors
both
sed -i '0,/"sum": "./s//"sum": "x/' sums.safetensors.part-1-of-2
join sums.safetensors
both
join --no-sync sums.safetensors
"$phema" verify -q sums.safetensors
: >cut.safetensors.part-1-of-3
join cut.safetensors
ls
