# The lines of each trainer store the design: with widths that are given and even times they are known.
lines() {
    echo "- $*"
    "$phema" design -q --params 1M "$@" | sed '1,/^$/d'
}
lines --trainer edm2 --until 204800k --disk 400M --sigma-rel 0.05:0.2 --input-sigma 0.05,0.1
lines --trainer ema-pytorch --until 100k --disk 80M --sigma-rel 0.05:0.2 --input-sigma 0.05,0.1 --dtype f16
lines --trainer posthoc-ema --until 100k --disk 80M --sigma-rel 0.05:0.2 --input-sigma 0.05
lines --trainer torchtitan --until 100k --disk 80M --sigma-rel 0.05:0.2 --input-sigma 0.05
lines --trainer lightning --until 100k --disk 80M --sigma-rel 0.05:0.2 --input-sigma 0.05
lines --even --until 100k --disk 80M --sigma-rel 0.05:0.2 --input-sigma 0.05,0.1 --dtype f16
lines --unit kimg --even --until 100k --disk 80M --sigma-rel 0.05:0.2 --input-sigma 0.05,0.1 --dtype f16
lines --unit tokens --even --until 100G --disk 80M --sigma-rel 0.05:0.2 --input-sigma 0.05 -o tokens.json | head -6
lines --even --until 100k --disk 80M --sigma-rel 0.05:0.2 --input-sigma 0.05 --dtype f32 -o design.json
echo "- the file"
tr -d '\n' <design.json | sed -E 's/ +/ /g; s/"worst_error": [0-9.e-]+/"worst_error": N/; s/"sigma_rel": 0\.[0-9]{3,}/"sigma_rel": N/'
echo
