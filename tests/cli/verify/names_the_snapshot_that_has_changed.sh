# Status 4 and the name of a snapshot that was changed, removed or added. verify finds the snapshots at the
# command's path, next to the output, or where --snapshots says.
"$phema" gen -q run >/dev/null
mv run/snapshot-0001536-0.050.safetensors later
"$phema" synth -q --sigma-rel 0.1 run out.safetensors >/dev/null
"$phema" synth -q --at 2048 --sigma-rel 0.1 run early.safetensors >/dev/null
echo "- added"
mv later run/snapshot-0001536-0.050.safetensors
"$phema" verify out.safetensors
echo "status $?"
mv run/snapshot-0001536-0.050.safetensors later
echo "- missing"
mv run/snapshot-0004096-0.050.safetensors newest
"$phema" verify out.safetensors
echo "status $?"
echo "- one that came after the average is none of its inputs"
"$phema" verify -q early.safetensors 2>&1
echo "status $?"
mv newest run/snapshot-0004096-0.050.safetensors
echo "- one byte"
cp run/snapshot-0002048-0.100.safetensors kept
printf '\377' | dd of=run/snapshot-0002048-0.100.safetensors bs=1 seek=20001 conv=notrunc status=none
"$phema" verify out.safetensors
echo "status $?"
"$phema" synth -q --skip-existing --sigma-rel 0.1 run out.safetensors
echo "status $?"
echo "- as it was again"
cp kept run/snapshot-0002048-0.100.safetensors
"$phema" verify -q out.safetensors
echo "- elsewhere"
mkdir archive
mv run archive/
"$phema" verify out.safetensors
echo "status $?"
"$phema" verify --snapshots archive/run out.safetensors
cp out.safetensors archive/
"$phema" verify archive/out.safetensors
"$phema" gen -q --count 4 other >/dev/null
"$phema" verify --snapshots other out.safetensors
echo "status $?"
echo "- large ones: the first element and the last are among those looked at"
"$phema" gen -q --count 4 --params 600k --dtype f16 --steps 40 large >/dev/null
"$phema" synth -q --sigma-rel 0.1 large large.safetensors >/dev/null
"$phema" verify -q large.safetensors
printf '\125' | dd of=large/snapshot-0000020-0.050.safetensors bs=1 conv=notrunc status=none \
    seek=$(($(stat -c %s large/snapshot-0000020-0.050.safetensors) - 1))
"$phema" verify large.safetensors
echo "status $?"
