# Names of directories, files and tensors, notes and titles appear as text, whatever they contain.
evil='<script>alert(1)<-script> & "x" '\''y'\'
"$phema" gen -q --count 2 "$evil" >/dev/null
mv "$evil/snapshot-0002048-0.050.safetensors" "$evil/<b onload=x>-0002048-0.050.safetensors"
find "$evil" -maxdepth 1 -name '*.safetensors' >list
"$phema" report -q --sigma-rel 0.07 --name-regex '-(?<time>\d+)-(?<sigma>[\d.]+)\.' @list -o files.html
cp -r "$evil" "<h1>two"
rm "<h1>two/<b onload=x>-0002048-0.050.safetensors"
"$phema" report -q --title "$(printf 'a\342\200\256b\033[31m\377</title><img src=x>')" --sigma-rel 0.07 \
    "<h1>two" -o titles.html
for page in files titles; do
    grep -ciE '<script|<b |<img|<h1>two' $page.html
    grep -oE '<title>[^<]*</title>' $page.html | head -n 1
done
grep -oE '<h1>[^<]*</h1>' titles.html
grep -oE '<td>[^<]*onload[^<]*</td>' files.html
grep -oE 'posthoc-ema report[^<]*' titles.html
