# Each run writes the same page, with no script, no external reference, and markup that is closed.
"$phema" gen -q --count 8 run >/dev/null
report() { "$phema" report -q --sigma-rel 0.07,0.15 run -o page.html "$@"; }
report
cp page.html first.html
report --force -v >/dev/null 2>&1
# The page contains the command.
sed -i 's/ --force -v//' page.html
cmp page.html first.html && echo same
grep -ciE '<script|<link|<img|<iframe|<object|javascript:|@import|url\(|[^a-z]on[a-z]+=' page.html
grep -oE '(src|href)=' page.html | wc -l
grep -oE 'https?://[^"]*' page.html | sort | uniq -c | sed 's/^ *//' # the name of SVG alone
grep -o "default-src 'none'; style-src 'unsafe-inline'" page.html
grep -c '<svg xmlns' page.html
# Every opened tag is closed, in order.
sed 's/<style>/&\n/; s/<!DOCTYPE html>//' page.html | grep -oE '</?[a-z0-9]+[^>]*>' | grep -v '/>$' |
    sed -E 's/<(\/?)([a-z0-9]+).*/\1\2/' | awk '
    /^\// { if (stack[n] != substr($0, 2)) print "closes", $0, "in", stack[n]; n--; next }
    { stack[++n] = $0 }
    END { print n, "open" }'
