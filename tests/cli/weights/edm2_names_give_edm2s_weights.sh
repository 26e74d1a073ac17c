# EDM2's own reconstruct_phema.py solved these in float64. The names are enough to solve them again.
awk '/"weights"/ { inside = 1; next } /}/ { inside = 0 } inside { sub(/,$/, ""); print $2 }' \
    "$fixtures/edm2/expected.json" >theirs
"$phema" weights --json --metric profile --sigma-rel 0.07,0.12,0.2 "$fixtures/edm2/snapshots" |
    grep -o '"weights": \[[^]]*' | sed 's/.*\[//' | tr ',' '\n' | tr -d ' ' >ours
paste ours theirs | awk '
    { n++; d = $1 - $2; if (d < 0) d = -d; if (!(d < 1e-12)) print "off:", $0 }
    END { print n, "weights compared" }'
