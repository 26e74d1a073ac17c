# Bytes that change on disk between the last part and the join are found, in every form. The message names file and
# part, nothing is published, and that part alone is written again.
"$phema" gen -q --count 2 --steps 300 --params 60k --tensors 5 --no-sync run >/dev/null
join() {
    "$phema" join -q --no-sync "$@"
    echo "status $?"
}
flip() { # FILE PLACE: changes a byte that is not where join writes digests
    local byte
    byte=$(od -An -tu1 -j "$2" -N1 "$1")
    # shellcheck disable=SC2059
    printf "\\x$(printf %02x $((byte ^ 1)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}
exec 2>&1
form() { # NAME OUT FILE PLACE ARGUMENTS...: a byte of FILE in OUT.partial is changed, and made again
    local name=$1 out=$2 file=$3 place=$4 i part
    shift 4
    echo "- $name"
    "$phema" synth -q --no-sync "$@" "one_$out" >/dev/null
    for i in 1 2 3; do "$phema" synth -q --no-sync --part $i/3 "$@" "$out"; done
    flip "$out.partial$file" "$place"
    join "$out" >said 2>&1
    cat said
    ls -d "$out"*
    part=$(grep -oE 'part [0-9]+ has' said | grep -oE '[0-9]+')
    for part in ${part:-1 2 3}; do
        "$phema" synth -q --no-sync --part "$part"/3 "$@" "$out"
    done
    join "$out"
    diff -r "one_$out" "$out" && { [ ! -e "$out.json" ] || cmp "one_$out.json" "$out.json"; } && echo "same"
    rm -r "one_$out"* "$out"*
}
edm2=$fixtures/edm2/snapshots ema=(--input-sigma "0.05,0.28" --update-every 5 "$fixtures/ema_pytorch/snapshots")
form "a tensor" out.safetensors "" 120000 --sigma-rel 0.1 run
form "the header" head.safetensors "" 20 --sigma-rel 0.1 run
form "shards" shards /model-00002-of-00003.safetensors 50000 --sigma-rel 0.1 --shard-size 100k run
form "the index of shards" indexed /model.safetensors.index.json 5 --sigma-rel 0.1 --shard-size 100k run
form "a distributed checkpoint" ranks /__0_0.distcp 100000 --sigma-rel 0.1 --ranks 2 run
form "a copy of a pickle" copy.pkl "" 1500 --sigma-rel 0.1 "$edm2"
form "a copy of a zip" copy.pt "" 3000 --sigma-rel 0.1 "${ema[@]}"
form "a copy of safetensors" into.safetensors "" 200000 --sigma-rel 0.1 --into run/snapshot-0000300-0.050.safetensors run

echo "- where parts meet, both are named"
parts() { for i in "$@"; do "$phema" synth -q --no-sync --part "$i/3" --sigma-rel 0.1 run out.safetensors; done; }
parts 1 2 3
size=$(stat -c %s out.safetensors.partial)
dd if=/dev/zero of=out.safetensors.partial bs=4096 seek=$((size / 4096 / 3 - 2)) count=5 conv=notrunc status=none
join out.safetensors
parts 1 2
join out.safetensors && rm out.safetensors

echo "- all zeros, as after --no-sync and a power failure"
parts 1 2 3
truncate -s 0 out.safetensors.partial
truncate -s "$size" out.safetensors.partial
join out.safetensors
parts 1 2 3
join out.safetensors && mv out.safetensors one.safetensors

echo "- a part of --part auto: the same command makes it again without its marker"
rank() { RANK=$1 WORLD_SIZE=3 "$phema" synth -q --no-sync --part auto --sigma-rel 0.1 run out.safetensors 2>&1 | sed "s/ on $(hostname)/ on HOST/"; }
rank 0
rank 1
flip out.safetensors.partial $((size / 2))
rank 2
rank 0
rm out.safetensors.part-2-of-3
rank 1
cmp one.safetensors out.safetensors && rm out.safetensors

echo "- several outputs: none is published"
for i in 1 2; do "$phema" synth -q --no-sync --part $i/2 --sigma-rel 0.1,0.2 run sweep/; done
flip sweep/phema-0000300-0.200.safetensors.partial 200000
join sweep
ls sweep

echo "- a compressed output: the content of a frame that join compresses"
"$phema" gen -q --count 1 --steps 8 --params 4M --tensors 4 --no-sync large >/dev/null
packed() { for i in 1 2; do "$phema" synth -q --no-sync --part $i/2 --sigma-rel 0.07 large out.safetensors.zst; done; }
packed
flip out.safetensors.zst.plain.partial 8000000
join out.safetensors.zst
stat -c '%n %s' out.safetensors.zst.partial
packed
join out.safetensors.zst

echo "- parts of an earlier version, whose markers have no checksums"
parts 1 2 3
sed -i ':a;N;$!ba;s/,\n "blocks":.*\n }\n}/\n}/' out.safetensors.part-2-of-3
grep -c blocks out.safetensors.part-?-of-3
"$phema" join --no-sync out.safetensors
cmp one.safetensors out.safetensors && echo "same"
