# Truths may have times between snapshots; the other files stay the same.
"$phema" gen --count 3 --steps 96 --truth 0.1 --truth-profile window:20 --truth-at 50,96 --json run
find run/truth -type f | sort
"$phema" gen --count 3 --steps 96 --truth 0.1 --truth-profile window:20 last >/dev/null
diff -r run/truth last/truth
cmp run/snapshot-0000064-0.050.safetensors last/snapshot-0000064-0.050.safetensors && echo same
