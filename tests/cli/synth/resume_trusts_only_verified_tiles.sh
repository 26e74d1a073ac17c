# The leftovers of a killed run may since have been torn, cut, replaced or removed, and inputs may have changed.
# --resume trusts a journal only where it is whole and of the same run, and only those of its tiles that can be read.
# All else is made again. The bytes are always those of an undisturbed run.
[[ $sanitize = *thread* ]] && echo "skipped: the thread sanitizer does not take the shim" >&2 && exit 77
faults="env LD_PRELOAD=$(dirname "$phema")/tests/libfaults.so"
slow="$faults FAULT_CALLS=pwrite FAULT_PATH=.partial FAULT_PAUSE=50"
export ASAN_OPTIONS=detect_leaks=0:${ASAN_OPTIONS-}
exec 2>&1
"$phema" gen -q --count 3 --steps 30 --params 1M --tensors 8 --dtype f32 --no-sync run >/dev/null
command=(--no-sync --sigma-rel 0.1 run)
"$phema" synth -q "${command[@]}" whole.safetensors >/dev/null
mkdir left
{ $slow FAULT_WITH=KILL FAULT_AT=22 "$phema" synth -q --resume -j2 "${command[@]}" left/o.safetensors; } 2>/dev/null
echo "status $?: $(ls left | tr '\n' ' ')"
size=$(stat -c %s left/o.safetensors.journal)
partial=new/o.safetensors.partial journal=new/o.safetensors.journal
again() { rm -rf new && cp -r left new; }
resume() { # what is said of it, and whether the bytes are right
    "$phema" synth --resume "${command[@]}" new/o.safetensors 2>&1 >/dev/null |
        grep -o -e 'resumed.* 0 B already' -e 'resumed [0-9]* output' -e '.* made anew' -e 'posthoc-ema: .*'
    cmp whole.safetensors new/o.safetensors && ls new
}
echo "- as it was"
again
resume
echo "- the journal cut at any length"
for ((at = 0; at < size; at += 1 + size / 25)); do
    again
    truncate -s $at $journal
    "$phema" synth -q --resume "${command[@]}" new/o.safetensors >/dev/null
    cmp whole.safetensors new/o.safetensors || echo "cut at $at"
done
echo "- cut, gone on with until a kill, and once more"
for ((at = 40; at < size; at += 1 + size / 7)); do
    again
    for kill in 3 6; do
        truncate -s $at $journal
        { $slow FAULT_WITH=KILL FAULT_AT=$kill "$phema" synth -q --resume -j2 "${command[@]}" new/o.safetensors; } 2>/dev/null
    done
    "$phema" synth -q --resume "${command[@]}" new/o.safetensors >/dev/null
    cmp whole.safetensors new/o.safetensors || echo "cut at $at"
done
echo "- a byte of it changed"
for ((at = 0; at < size; at += 1 + size / 25)); do
    again
    printf '\252' | dd of=$journal bs=1 seek=$at conv=notrunc status=none
    "$phema" synth -q --resume "${command[@]}" new/o.safetensors >/dev/null || { [ $at -lt 22 ] && rm $journal && "$phema" synth -q --resume "${command[@]}" new/o.safetensors >/dev/null; }
    cmp whole.safetensors new/o.safetensors || echo "changed at $at"
done 2>&1 | sed 's/journal: .*/journal/' | uniq -c | sed 's/^ *[0-9]* //'
echo "- more behind it"
again
head -c 1000 /dev/zero >>$journal
resume
echo "- the partial output gone, cut, longer, of zeros, with other bytes"
again
rm $partial
resume
again
truncate -s 1000000 $partial
resume
again
echo x >>$partial
resume
again
rm $partial && truncate -s "$(stat -c %s whole.safetensors)" $partial
resume
again
printf '\252' | dd of=$partial bs=1 seek=700000 conv=notrunc status=none
printf '\252' | dd of=$partial bs=1 seek=3 conv=notrunc status=none # in the header
resume
echo "- a directory, a link in the place of the journal, and a file that is none"
again
rm $journal && mkdir $journal
"$phema" synth -q --resume "${command[@]}" new/o.safetensors
echo "status $?: $(ls new | tr '\n' ' ')"
again
mv $journal kept && ln -s ../kept $journal
"$phema" synth -q --resume "${command[@]}" new/o.safetensors
echo "status $?: $(ls new | tr '\n' ' ')"
again
echo "mine" >$journal
"$phema" synth -q --resume "${command[@]}" new/o.safetensors
echo "status $?: $(ls new | tr '\n' ' '), $(cat $journal)"
echo "- of other weights, of another dtype"
again
"$phema" synth --resume --no-sync --sigma-rel 0.2 run new/o.safetensors 2>&1 | grep anew
again
"$phema" synth --resume "${command[@]}" --dtype f16 new/o.safetensors 2>&1 | grep anew
echo "- without --resume: nothing of it is left"
again
"$phema" synth "${command[@]}" new/o.safetensors 2>&1 | grep anew
cmp whole.safetensors new/o.safetensors && ls new
echo "- killed when it was published, but for the journal"
again
{ $faults FAULT_CALLS=unlink FAULT_PATH=.journal FAULT_WITH=KILL FAULT_AT=1 "$phema" synth -q --resume "${command[@]}" new/o.safetensors; } 2>/dev/null
echo "status $?: $(ls new | tr '\n' ' ')"
"$phema" synth --resume "${command[@]}" new/o.safetensors 2>&1 | grep -o 'is up to date'
ls new
echo "- an input changed between"
again
touch -d 2001-01-01 run/snapshot-0000020-0.100.safetensors
resume
again
printf '\252' | dd of=run/snapshot-0000020-0.100.safetensors bs=1 seek=2000000 conv=notrunc status=none
"$phema" synth -q "${command[@]}" -f whole.safetensors >/dev/null
resume
echo "- an input changed while it was read: nothing is left to go on with"
rm -rf new && mkdir new
$slow FAULT_WITH=STOP FAULT_AT=22 "$phema" synth -q --resume -j1 "${command[@]}" new/o.safetensors &
pid=$!
await_stop $pid
[ -s new/o.safetensors.journal ] || echo "no journal"
touch run/snapshot-0000020-0.100.safetensors
kill -CONT $pid
wait $pid
echo "status $?: $(ls new | tr '\n' ' ')"
echo "- another run is at it"
again
$slow FAULT_WITH=STOP FAULT_AT=3 "$phema" synth -q --resume -j1 "${command[@]}" new/o.safetensors &
pid=$!
await_stop $pid
"$phema" synth -q --resume "${command[@]}" new/o.safetensors
echo "status $?"
{ kill -KILL $pid; wait $pid; } 2>/dev/null
resume | sed 's/, 0 B already//' # of its own there may be something in the journal, or nothing
echo "- a run that fails or is stopped before it goes on loses nothing of it"
for options in "" "--shard-size 1M" "--into run/snapshot-0000030-0.100.safetensors"; do
    out=o.safetensors
    read -ra form <<<"$options"
    [[ $options = --shard* ]] && out=o
    rm -rf left && mkdir left
    { $slow FAULT_WITH=KILL FAULT_AT=26 "$phema" synth -q --resume -j2 "${form[@]}" "${command[@]}" left/$out; } 2>/dev/null
    for fault in "flock EIO" "pwrite ENOSPC" "pwrite TERM"; do
        again
        { env --default-signal=TERM LD_PRELOAD="$(dirname "$phema")/tests/libfaults.so" FAULT_PATH=new/ FAULT_AT=1 "FAULT_CALLS=${fault% *}" "FAULT_WITH=${fault#* }" "$phema" synth -q --resume "${form[@]}" "${command[@]}" new/$out; } >/dev/null 2>&1
        echo "${options% *} $fault: status $?, $("$phema" synth --resume "${form[@]}" "${command[@]}" new/$out 2>&1 >/dev/null | grep -o 'resumed.* [1-9]' | sed 's/,.*//')"
    done
done
echo "- several outputs that are not equally far"
widths=(--no-sync --sigma-rel "0.05,0.1,0.2" run)
rm -rf left whole && mkdir left
"$phema" synth -q "${widths[@]}" whole/ >/dev/null
{ $slow FAULT_WITH=KILL FAULT_AT=66 "$phema" synth -q --resume -j2 "${widths[@]}" left/; } 2>/dev/null
echo "status $?: $(ls left | wc -l) files"
for journal in left/*.journal; do # one knows nothing, then of half, then has no partial output, or is another's
    for what in "truncate -s 39" "truncate -s $((39 + ($(stat -c %s "$journal") - 39) / 2))" rm zeros "rm journal" "cp other"; do
        again
        file=new/${journal#left/}
        case $what in
            rm) rm "${file%.journal}.partial" ;;
            zeros)
                rm "${file%.journal}.partial"
                truncate -s "$(stat -c %s whole/phema-0000030-0.100.safetensors)" "${file%.journal}.partial"
                ;;
            "rm journal") rm "$file" ;;
            "cp other") cp left/phema-0000030-0.100.safetensors.journal "$file" ;;
            *) $what "$file" ;;
        esac
        "$phema" synth -q --resume "${widths[@]}" new/ >/dev/null
        diff -r whole new || echo "$what $journal"
    done
done
echo "- a copy, with other bytes in a tensor and between them"
copy=(--into run/snapshot-0000030-0.100.safetensors --no-sync --sigma-rel 0.1 run)
rm -rf left && mkdir left
"$phema" synth -q -f "${copy[@]}" whole.safetensors >/dev/null
{ $slow FAULT_WITH=KILL FAULT_AT=22 "$phema" synth -q --resume -j2 "${copy[@]}" left/o.safetensors; } 2>/dev/null
echo "status $?: $(ls left | tr '\n' ' ')"
for at in 20 300 783 784 200000 3999999; do
    again
    printf '\252' | dd of=$partial bs=1 seek=$at conv=notrunc status=none
    "$phema" synth -q --resume "${copy[@]}" new/o.safetensors >/dev/null
    cmp whole.safetensors new/o.safetensors && cmp whole.safetensors.json new/o.safetensors.json || echo "changed at $at"
done
ls new
echo "- a copy with strided tensors is made in one go"
mkdir views
cp "$fixtures/torch/views.pt" views/a.1.pt
cp "$fixtures/torch/views.pt" views/a.2.pt
printf 'a.1.pt 0.5\na.2.pt 0.25\n' >views/weights
"$phema" synth --resume --name-regex '(?<time>\d+)' --weights views/weights views o.pt 2>&1 | grep 'in one go'
