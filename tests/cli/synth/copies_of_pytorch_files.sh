# Snapshots that torch wrote give a copy of the newest one, with the averaged tensors replaced. The copy has the
# same length, passes unzip -t, and holds the values of the safetensors output. Its provenance is next to it.
for kind in ema_pytorch posthoc_ema; do
    weights=$fixtures/$kind/weights_0.10.txt
    newest=$fixtures/$kind/snapshots/1.300.pt
    "$phema" synth -q --weights "$weights" "$fixtures/$kind/snapshots" $kind.pt
    "$phema" synth -q --weights "$weights" "$fixtures/$kind/snapshots" $kind.safetensors >/dev/null
    unzip -tq $kind.pt
    [ "$(stat -c %s $kind.pt)" = "$(stat -c %s "$newest")" ] && echo "as long as the newest"
    key=
    [ $kind = ema_pytorch ] && key=ema_model
    "$phema" synth -q --convert --key "${key:-.}" $kind.pt back.safetensors >/dev/null
    "$phema" diff back.safetensors $kind.safetensors
    # synth records the same about the copy as about the safetensors file
    tr -d '\n' <$kind.pt.json | grep -o '"posthoc_ema.time": "[0-9]*"\|"metric":"given"\|"file":"1.300.pt"'
    rm back.safetensors
done
echo "- beside the subtree all is as in the newest"
"$phema" diff -v ema_pytorch.pt "$fixtures/ema_pytorch/snapshots/1.300.pt" |
    grep -e ' step$' -e ' initted$' -e num_batches_tracked
echo "- the same bytes on one thread and on eight, and for one of several targets"
"$phema" synth -q -j1 --input-sigma 0.05,0.28 --update-every 5 --sigma-rel 0.1 \
    "$fixtures/ema_pytorch/snapshots" one.pt
"$phema" synth -q -j8 --input-sigma 0.05,0.28 --update-every 5 --sigma-rel 0.05,0.1,0.2 --at 200,300 \
    "$fixtures/ema_pytorch/snapshots" many/
cmp one.pt many/phema-0000300-0.100.pt && cmp one.pt.json many/phema-0000300-0.100.pt.json &&
    echo "same"
"$phema" diff -v many/phema-0000200-0.100.pt "$fixtures/ema_pytorch/snapshots/1.200.pt" | grep ' step$'
echo "- an archive without checksums keeps its zeros, one with them has all mended"
printf 'a.1.pt 0.5\na.2.pt 0.25\n' >weights.txt
for from in no_crc32 plain; do
    rm -rf run && mkdir run
    cp "$fixtures/torch/$from.pt" run/a.1.pt
    cp "$fixtures/torch/$from.pt" run/a.2.pt
    "$phema" synth -q --name-regex 'a[.](?<time>\d+)' --weights weights.txt run $from.pt
    "$phema" diff $from.pt run/a.2.pt | tail -n 1 # 0.75 of it
    unzip -v $from.pt | awk '$NF ~ /\/data\/[0-9]+$/ { if ($7 == "00000000") none++; else some++ }
        END { print none + 0, "records without a checksum,", some + 0, "with one" }'
done
unzip -tq plain.pt
# a copy is made only if the checksum next to the data equals that of the directory: here they are equal
"$phema" synth -q --convert --into plain.pt run/a.2.pt again.pt && unzip -tq again.pt
"$phema" diff again.pt run/a.2.pt
echo "- the format before 1.6"
rm -rf run && mkdir run
cp "$fixtures/legacy/plain.pt" run/a.1.pt
cp "$fixtures/legacy/plain.pt" run/a.2.pt
"$phema" synth -q --name-regex 'a[.](?<time>\d+)' --weights weights.txt run legacy.pth
"$phema" synth -q --name-regex 'a[.](?<time>\d+)' --weights weights.txt run legacy.safetensors
[ "$(stat -c %s legacy.pth)" = "$(stat -c %s run/a.2.pt)" ] && echo "as long as the newest"
"$phema" diff legacy.pth legacy.safetensors
"$phema" inspect legacy.pth | head -n 1
