# weights prints the same errors and weights.
"$phema" gen -q --count 4 run >/dev/null
"$phema" report -q --sigma-rel 0.07,0.15 --metric profile run -o page.html
rows() { sed -n "/id=\"$1\"/,/<\/section>/p" page.html | grep '^<tr><td' | sed -E 's/<[^>]*>/ /g; s/  +/ /g; s/^ //'; }
rows targets
"$phema" weights -qv --sigma-rel 0.07,0.15 --metric profile run | sed -n '2,5p' | sed -E 's/ +/ /g'
rows snapshots | sed -E 's/ [0-9a-f]{32} / /' | sed -n '2,5p'
# The fingerprints of the snapshots are those in a provenance.
"$phema" synth -q --sigma-rel 0.07 run out.safetensors >/dev/null
"$phema" inspect --json out.safetensors | grep -oE '"xxh3[^0-9a-f]*[0-9a-f]{32}' | grep -oE '[0-9a-f]{32}$' | sort >wanted
rows snapshots | grep -oE '[0-9a-f]{32}' | sort | cmp - wanted && echo digests
