# --skip-existing keeps existing outputs that would be the same, and makes missing ones. Outputs that would differ
# are refused, or replaced with --force.
"$phema" gen -q run >/dev/null
synth() { "$phema" synth -q --skip-existing "$@"; echo "status $?"; }
synth --sigma-rel 0.05,0.1,0.2 run sweep/
rm sweep/*0.100*
touch -d 2001-01-01 sweep/*
synth --sigma-rel 0.05,0.1,0.2 -j1 --io mmap run sweep/
find sweep -newermt 2002-01-01
"$phema" synth --skip-existing --sigma-rel 0.05,0.1,0.2 run sweep/ 2>&1 | grep -e up -e output
"$phema" synth --skip-existing --json --sigma-rel 0.1 run sweep/phema-0004096-0.100.safetensors 2>/dev/null |
    grep outputs
echo "- what differs is said"
cp sweep/phema-0004096-0.100.safetensors out.safetensors
synth --sigma-rel 0.2 run out.safetensors
synth --sigma-rel 0.1 --metric profile --ridge 1 run out.safetensors
synth --sigma-rel 0.1 --dtype bf16 run out.safetensors
synth --sigma-rel 0.1 --exclude bias run out.safetensors
synth --sigma-rel 0.1 --rule bias=copy run out.safetensors
synth --sigma-rel 0.1 --last 4 run out.safetensors
echo "- or is replaced"
synth --force --sigma-rel 0.1 --dtype bf16 run out.safetensors
synth --sigma-rel 0.1 --dtype bf16 run out.safetensors
echo "- what says nothing of itself"
echo mine >out.safetensors
synth --sigma-rel 0.1 run out.safetensors
"$phema" synth -q --skip-existing --convert sweep/phema-0004096-0.100.safetensors c.safetensors
echo "status $?"
echo "- copies, shards and compressed ones"
edm2="$fixtures/edm2/snapshots"
synth --sigma-rel 0.1 "$edm2" copy.pkl
synth --sigma-rel 0.1 "$edm2" copy.pkl
for _ in 1 2; do
    synth --shard-size 10k --sigma-rel 0.1 run shards/
    synth --level 9 --sigma-rel 0.1 run out.safetensors.zst
done
synth --sigma-rel 0.1 run out.safetensors.zst
ls
