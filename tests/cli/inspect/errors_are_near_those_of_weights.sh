# inspect predicts errors without reading tensors; weights samples the tensors. The two must be near.
"$phema" gen -q --count 6 --dtype f16 run >/dev/null
"$phema" inspect -q --json run |
    sed -nE 's/.*"sigma_rel": 0\.(0125|0724|0725|2124|2125)[0-9]*, "total": ([0-9.e-]+).*/\2/p' >seen
"$phema" weights -q --json --sigma-rel 0.0125,0.0725,0.2125 run |
    grep -oE '"predicted_error": \{"total": [0-9.e-]+' | sed 's/.* //' >wanted
paste seen wanted | awk '{ d = $1 / $2 - 1; print (d < 0.5 && d > -0.5) ? "near" : $0 }'
