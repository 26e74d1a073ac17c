# Snapshots compressed with zstd, by any writer, give the averages of the plain ones. This holds on any number of
# threads, with a seek table or without, alone or mixed with plain ones. (This needs equal weights: the program
# samples fewer places of compressed files to see how parameters moved.)
"$phema" gen -q --count 3 --params 300k --dtype f16 --no-sync run >/dev/null
"$phema" synth -q --no-sync --metric walk --sigma-rel 0.07,0.09 run plain/ >/dev/null
mkdir stream frames table mixed
for f in run/*.safetensors; do
    name=${f#run/}
    zstd -q1 <"$f" >stream/"$name".zst                      # one frame that does not say its size
    for part in 0 1 2; do                               # frames that end within tensors, no table
        dd if="$f" bs=200000 skip=$part count=$((part == 2 ? 9 : 1)) status=none | zstd -q --no-check
    done >frames/"$name".zst
    "$phema" synth -q --no-sync --convert "$f" table/"$name".zst >/dev/null
    case $name in
    *-0.050*) cp table/"$name".zst mixed ;;
    *-0004096-*) cp stream/"$name".zst mixed ;;
    *) cp "$f" mixed ;;
    esac
done
for kind in stream frames table mixed; do
    for j in 1 8; do
        "$phema" synth -q --no-sync -j$j --metric walk --sigma-rel 0.07,0.09 $kind "$kind-$j-{sigma}.safetensors" >/dev/null
        for sigma in 0.070 0.090; do
            "$phema" diff $kind-$j-$sigma.safetensors plain/phema-0004096-$sigma.safetensors
        done
    done
    cmp $kind-1-0.070.safetensors $kind-8-0.070.safetensors && echo "$kind: the same on 1 and 8 threads"
done
echo "- tensors in another order in one of two files"
mkdir order
entry() { printf '"%s":{"dtype":"F32","shape":[4],"data_offsets":[%d,%d]}' "$1" "$2" $(($2 + 16)); }
write() { # file, header
    printf '%b' "\\x$(printf %02x ${#2})\\0\\0\\0\\0\\0\\0\\0" >"$1"
    printf '%s' "$2" >>"$1"
    printf 'abcdefghijklmnopqrstuvwxyz012345' >>"$1"
}
write order/snapshot-0000001-0.050.safetensors "{$(entry a 0),$(entry b 16)}"
write order/snapshot-0000002-0.050.safetensors "{$(entry a 16),$(entry b 0)}"
printf '%s 0.5\n' snapshot-000000{1,2}-0.050.safetensors >weights.txt
"$phema" synth -q --weights weights.txt order order.safetensors
for n in 1 2; do
    zstd -q <order/snapshot-000000$n-0.050.safetensors >order/snapshot-000000$n-0.050.safetensors.zst
    rm order/snapshot-000000$n-0.050.safetensors
done
printf '%s 0.5\n' snapshot-000000{1,2}-0.050.safetensors.zst >weights.txt
"$phema" synth -q --weights weights.txt order refused.safetensors
echo "  $?"
zstd -qd --rm order/*1-0.050.safetensors.zst # one of them can be gone to and fro
printf '%s 0.5\n' snapshot-0000001-0.050.safetensors snapshot-0000002-0.050.safetensors.zst >weights.txt
"$phema" synth -q --weights weights.txt order again.safetensors
"$phema" diff again.safetensors order.safetensors
zstd -qd --rm order/*2-0.050.safetensors.zst
for n in 1 2; do # both with a table
    "$phema" synth -q --convert order/snapshot-000000$n-0.050.safetensors order/$n.safetensors.zst >/dev/null
    mv order/$n.safetensors.zst order/snapshot-000000$n-0.050.safetensors.zst
    rm order/snapshot-000000$n-0.050.safetensors
done
printf '%s 0.5\n' snapshot-000000{1,2}-0.050.safetensors.zst >weights.txt
"$phema" synth -q --weights weights.txt order table.safetensors
"$phema" diff table.safetensors order.safetensors
echo "- damage in the middle, and a file that ends too early"
for kind in stream table; do
    cp -r $kind bad
    f=$(ls bad/*-0.050* | sed -n 2p)
    size=$(stat -c %s "$f")
    yes damage | head -c 64 | dd of="$f" bs=1 seek=$((size / 2)) conv=notrunc status=none
    "$phema" synth -q --no-sync -j8 --sigma-rel 0.07 bad bad.safetensors 2>message
    echo "  $kind $?"
    grep -c "^posthoc-ema: $f: tensor '[a-z.0-9]*': " message
    wc -l <message
    rm -r bad
done
cp -r stream bad
truncate -s 100000 "$(ls bad/*-0.050* | sed -n 2p)"
"$phema" synth -q --no-sync -j8 --sigma-rel 0.07 bad bad.safetensors
echo "  $?"
ls -A | grep '^bad[.]'
true
