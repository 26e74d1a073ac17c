# SVG is text: titles, axes with units, legends. Each run writes the same bytes. The file is well-formed,
# with no external references and no ids.
"$phema" gen --quiet --count 4 run
for kind in profiles weights error; do
    "$phema" plot --quiet $kind --sigma-rel 0.15 run -o $kind.svg
    "$phema" plot --quiet $kind --sigma-rel 0.15 run -o again.svg --force >/dev/null
    cmp $kind.svg again.svg
    grep -oE '>[^<>]+</text>' $kind.svg | sed -E 's/^>|<\/text>$//g' | grep '[a-z]'
    grep -cE 'href|url\(|<script| id=|nan|inf' $kind.svg
    python3 -c "import sys, xml.dom.minidom as m; d = m.parse(sys.argv[1]).documentElement; \
        print(d.tagName, d.getAttribute('width'), d.getAttribute('viewBox'))" $kind.svg
done
