# --advise names the snapshots that could be deleted. The rest predict at most the allowed error, and the
# outputs made from them keep to it.
# shellcheck disable=SC2086 # options are several words
"$phema" gen -q --count 12 --steps 1200 --params 20k --tensors 4 --truth 0.07,0.15,0.2 run >/dev/null
targets="--sigma-rel 0.07,0.15,0.2"
"$phema" weights --advise --max-error 1e-3 $targets run >list 2>said
grep -c '^keep ' list
grep -c '^delete ' list
tail -n 2 said
cp -r run less
grep '^delete' list | while read -r _ file; do rm "less/$file"; done
"$phema" synth -q --no-sync $targets less out/ >/dev/null
for sigma in 0.070 0.150 0.200; do
    "$phema" diff --tolerance 1.5e-3 out/phema-0001200-$sigma.safetensors \
        run/truth/truth-0001200-$sigma.safetensors >/dev/null
    echo "$sigma: $?"
done
"$phema" weights -q --advise --max-error 1e-3 $targets --json run | sed -n '/"advice"/,$p' |
    sed -E 's/: [0-9][0-9.e-]*/: N/g; s/\[.*\]/[...]/'
echo "- an error that cannot be kept with all of them, and one that needs none of the others"
"$phema" weights --advise --max-error 1e-9 $targets run 2>&1 >/dev/null | tail -n 3
"$phema" weights --advise --max-error 0.9 --sigma-rel 0.1 run 2>/dev/null | grep -c '^keep'
echo "- what cannot be asked"
"$phema" weights -q --advise $targets run
"$phema" weights -q --advise --max-error 0 $targets run
"$phema" weights -q --advise --max-error 1e-3 --at 600,1200 $targets run
echo "snapshot-0001200-0.100.safetensors 1" >one.txt
"$phema" weights -q --advise --max-error 1e-3 --weights one.txt --sigma-rel 0.1 run
