# A resumed run reports the same about NaN, overflow and tensors as an undisturbed one. It adds the counts of tiles
# that are not done again. With --nan error such tiles are done again, and refused.
[[ $sanitize = *thread* ]] && echo "skipped: the thread sanitizer does not take the shim" >&2 && exit 77
slow="env LD_PRELOAD=$(dirname "$phema")/tests/libfaults.so FAULT_CALLS=pwrite FAULT_PATH=.partial FAULT_PAUSE=50"
export ASAN_OPTIONS=detect_leaks=0:${ASAN_OPTIONS-}
exec 2>&1
"$phema" gen -q --count 3 --steps 30 --params 1M --tensors 8 --dtype f32 --no-sync run >/dev/null
# NaN in the first tiles and the last, numbers outside the range of float16, a tensor that never changes
newest=run/snapshot-0000030-0.100.safetensors
for at in 60000 260000 261000 3900000; do
    head -c 400 /dev/zero | tr '\0' '\377' | dd of=$newest bs=1 seek=$at conv=notrunc status=none
done
for at in 100000 1500000; do
    printf '\0\0\200\177%.0s' 1 2 3 | dd of=$newest bs=1 seek=$at conv=notrunc status=none # infinities
    printf '\0\0\0\112%.0s' 1 2 3 | dd of=$newest bs=1 seek=$((at + 40)) conv=notrunc status=none # 2097152
done
for file in run/*.safetensors; do # blocks.2.bias, blocks.2.weight
    head -c 1711720 /dev/zero | dd of="$file" bs=100k iflag=fullblock seek=1721444 oflag=seek_bytes conv=notrunc status=none
done
arguments=(--no-sync --overflow saturate --dtype f16 --sigma-rel "0.1,0.2" run)
said() { grep -e warning -e 'tensors averaged' | sed 's/; kernels.*//'; }
"$phema" synth -v -j2 "${arguments[@]}" whole/ 2>&1 >/dev/null | said
for io in read mmap; do # other tiles: what was counted in these is done again
    rm -rf new
    { $slow FAULT_WITH=KILL FAULT_AT=34 "$phema" synth -q --resume -j2 "${arguments[@]}" new/; } 2>/dev/null
    echo "status $?"
    "$phema" synth -v --resume -j2 --io $io "${arguments[@]}" new/ 2>&1 >/dev/null | said
    diff -r whole new && echo "same"
done
echo "- refused now"
rm -rf new
{ $slow FAULT_WITH=KILL FAULT_AT=34 "$phema" synth -q --resume -j2 "${arguments[@]}" new/; } 2>/dev/null
echo "status $?"
"$phema" synth -q --resume -j1 --nan error "${arguments[@]}" new/ 2>&1 | grep -o "tensor '.*"
