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
echo "- frames of compressed outputs"
"$phema" gen -q --count 1 --steps 8 --params 4M --tensors 4 --no-sync large >/dev/null
packed() { rm -f zst.*; for i in 1 2; do "$phema" synth -q --no-sync --part $i/2 "$@" --sigma-rel 0.07 large zst.safetensors.zst; done; }
packed
truncate -s -1 zst.safetensors.zst.part-1-of-2.frames
join zst.safetensors.zst
truncate -s +1 zst.safetensors.zst.part-1-of-2.frames # its last byte is another, most likely
printf '\x55\xaa' | dd of=zst.safetensors.zst.part-1-of-2.frames bs=1 seek=1000 conv=notrunc status=none
join zst.safetensors.zst
stat -c '%n %s' zst.safetensors.zst.partial
rm zst.safetensors.zst.part-1-of-2.frames
join zst.safetensors.zst
packed
truncate -s -1 zst.safetensors.zst.plain.partial
join zst.safetensors.zst
rm zst.safetensors.zst.plain.partial
join zst.safetensors.zst
edit() { # PART EXPRESSION
    packed
    cp "zst.safetensors.zst.part-$1-of-2" unedited
    sed -i "$2" "zst.safetensors.zst.part-$1-of-2"
    cmp -s unedited "zst.safetensors.zst.part-$1-of-2" && echo "not edited: $2"
    join zst.safetensors.zst
}
edit 2 's/"first": [0-9]*/"first": 1/'
edit 2 's/"first": [0-9]*/"first": 1000000/'
edit 2 's/"first": [0-9]*/"first": 9000000/'
edit 1 '/"ends"/d; s/\]}\],$/]}]/'
edit 1 's/"ends": \[[0-9]*, [0-9]*/"ends": [9, 7/'
edit 1 's/"ends": \[[0-9]*, [0-9]*, /"ends": [/'
edit 1 's/"ends": .*[0-9]/&0/'
edit 2 's/"sizes": \[[0-9]*/"sizes": [0/'
edit 2 's/"sizes": \[[0-9]*/"sizes": [4294967295/'
edit 2 's/"bytes": [0-9]*,$/"bytes": 5000000,/; s/"sizes": \[[0-9]*, [0-9]*\]/"sizes": [4900000, 100000]/'
edit 2 's/"library": [0-9]*/"library": 1/'
edit 2 's/"level": [0-9]*/"level": 1/'
edit 1 's/"hash": "./&0/'
echo "- a content that is not that of the frames, where parts were to be verified"
packed --verify
printf '\x55\xaa' | dd of=zst.safetensors.zst.plain.partial bs=1 seek=10000000 conv=notrunc status=none
join zst.safetensors.zst
stat -c '%n %s' zst.safetensors.zst.partial
rm unedited
echo "- another level, and a run without parts"
packed
"$phema" synth -q --no-sync --part 1/2 --level 1 --sigma-rel 0.07 large zst.safetensors.zst
"$phema" synth -q --no-sync --sigma-rel 0.07 large zst.safetensors.zst
join --no-sync zst.safetensors.zst
: >cut.safetensors.part-1-of-3
join cut.safetensors
ls
