# plot design draws the choices by disk, and the times and widths of the chosen one, from --json and from the
# file of -o.
"$phema" design -q --even --input-sigma 0.05,0.1 --dtype f16 --until 10k --model 4M --disk 40M \
    --sigma-rel 0.05:0.2 -o one.json --json >plan.json
"$phema" plot design plan.json -o plan.svg --csv plan.csv
"$phema" plot design one.json -o one.csv
sed -E 's/[0-9.]+e-[0-9]+$/N/; s/,0\.000[0-9]+$/,N/; s/,0\.00[0-9]+$/,N/' plan.csv
echo "- the file of -o has the same times"
grep '^times' plan.csv >a && grep '^times' one.csv >b && cmp a b
python3 -c "import xml.dom.minidom as m; print(m.parse('plan.svg').documentElement.tagName)"
echo "- what is no design"
echo '{"until": 100}' >bad.json
"$phema" plot design bad.json -o bad.svg 2>&1
echo '[1' >bad.json
"$phema" plot design bad.json -o bad.svg 2>&1
"$phema" plot design --sigma-rel 0.1 one.json -o bad.svg 2>&1
