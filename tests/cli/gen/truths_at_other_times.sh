# Truths may have times between snapshots. The average that is a snapshot as well has the same bytes there.
"$phema" gen --count 3 --steps 96 --truth 0.1 --truth-profile window:20 --truth-at 50,64,96 --json run
find run/truth -type f | sort
for time in 64 96; do
    "$phema" diff run/snapshot-00000$time-0.100.safetensors run/truth/truth-00000$time-0.100.safetensors
done
