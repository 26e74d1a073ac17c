# A distributed checkpoint that was killed at any write is resumed to the bytes of an undisturbed run, with the
# checksums of tiles that are not written again. Without --resume the next run starts anew. Nothing has the name of the
# output before it is complete, and a failed write leaves nothing.
[[ $sanitize = *thread* ]] && echo "skipped: the thread sanitizer does not take the shim" >&2 && exit 77
faults="env LD_PRELOAD=$(dirname "$phema")/tests/libfaults.so FAULT_CALLS=pwrite FAULT_PATH=.partial"
export ASAN_OPTIONS=detect_leaks=0:${ASAN_OPTIONS-}
exec 2>&1
"$phema" gen -q --count 3 --steps 30 --params 400k --tensors 8 --dtype f32 --no-sync run >/dev/null
command=(--no-sync --ranks 2 --sigma-rel 0.1 run)
"$phema" synth -q "${command[@]}" whole/ >/dev/null
mkdir new
for kill in 5 14 26; do
    { $faults FAULT_PAUSE=30 FAULT_WITH=KILL FAULT_AT=$kill "$phema" synth -q --resume -j2 "${command[@]}" new/o; } 2>/dev/null
    ls -A new | grep -v '[.]partial$\|[.]journal$'
done
ls -A new
"$phema" synth --resume "${command[@]}" new/o 2>&1 >/dev/null | grep -c -o 'resumed'
sed -i 's|new/o|whole|' new/o/posthoc_ema.json
diff -r <(cd whole && sha256sum .metadata ./*.distcp) <(cd new/o && sha256sum .metadata ./*.distcp) && echo "same"
ls -A new
echo "- in parts"
for part in 1 2; do
    { $faults FAULT_PAUSE=30 FAULT_WITH=KILL FAULT_AT=8 "$phema" synth -q --resume --part $part/2 -j1 "${command[@]}" parts/; } 2>/dev/null
    "$phema" synth -q --resume --part $part/2 "${command[@]}" parts/
done
"$phema" join -q --no-sync parts >/dev/null
diff -r whole parts && echo "same"
echo "- killed, and begun anew"
{ $faults FAULT_WITH=KILL FAULT_AT=12 "$phema" synth -q "${command[@]}" anew/; } 2>/dev/null
"$phema" synth -q "${command[@]}" anew/ >/dev/null
diff -r whole anew && echo "same"
echo "- a full disk at any write"
for ((at = 1; at < 40; at += 5)); do
    $faults FAULT_WITH=ENOSPC FAULT_AT=$at "$phema" synth -q -j1 "${command[@]}" full/ >/dev/null
done 2>&1 | sed 's|full[^:]*|full|' | sort -u
ls -d full* 2>/dev/null
true
