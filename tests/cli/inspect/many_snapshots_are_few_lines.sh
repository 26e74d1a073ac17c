# A thousand snapshots are one line; -v lists them. Times that the names round are evenly spaced, too.
"$phema" gen -q --count 500 --steps 1M --params 20 run >/dev/null
"$phema" inspect -q run | sed '/dtype/,$d'
"$phema" inspect -v run 2>/dev/null | grep -c safetensors
"$phema" gen -q --count 30 --params 20 rounded >/dev/null
"$phema" inspect -q rounded | sed -n 2p
# Times that are unevenly spaced share one line as long as the widths are the same.
for t in 1 2 4 8 16 32 64; do
    "$phema" gen -q --count 1 --steps "${t}00" --params 20 uneven >/dev/null
done
rm uneven/*0000800-0.050*
"$phema" inspect -q uneven | sed '/model/,$d'
