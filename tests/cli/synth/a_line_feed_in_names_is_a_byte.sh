# Names of the directory, of snapshots and of OUT may hold line feeds and braces; messages stay one line.
"$phema" gen -q --no-sync --count 2 --steps 16 --params 100 run >/dev/null
"$phema" synth -q --no-sync --sigma-rel 0.1 run plain.safetensors >/dev/null
mkdir $'a\nb{'
for f in run/*.safetensors; do
    cp "$f" $'a\nb{/x\n'"${f#run/}"
done
"$phema" synth -q --no-sync --sigma-rel 0.1 $'a\nb{' $'a\nb{{/c\nd.safetensors' >/dev/null
echo "status $?"
"$phema" diff plain.safetensors $'a\nb{/c\nd.safetensors' | tail -n 1
"$phema" synth -q --no-sync --sigma-rel 0.1 $'a\nb{' $'a\nb{{/c\nd.safetensors'
echo "status $?"
# a line feed does not end a name: this name no longer ends in .safetensors
count() { "$phema" weights -qv --sigma-rel 0.1 $'a\nb{' | grep -c 0000016-0.050; }
count
mv $'a\nb{/x\nsnapshot-0000016-0.050.safetensors' $'a\nb{/x\nsnapshot-0000016-0.050.safetensors\n'
count
exit 0
