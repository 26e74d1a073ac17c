# inspect shows a series by its times: even stretches, missing times, widths missing at some times,
# duplicate averages. It also predicts errors, which need no locale.
"$phema" gen -q --count 16 run >/dev/null
rm run/snapshot-0000768-* run/snapshot-0001024-* run/snapshot-0002048-0.050*
cp run/snapshot-0003072-0.100.safetensors run/twice-0003072-0.100.safetensors
find run -maxdepth 1 -type f | sort >list.txt
"$phema" inspect -q --name-regex '-(?<time>\d+)-(?<sigma>[\d.]+)\.' @list.txt | sed '/dtype/,$d'
"$phema" inspect -q --json --name-regex '-(?<time>\d+)-(?<sigma>[\d.]+)\.' @list.txt |
    sed -n '/"bytes": [0-9]*,$/,/"predicted_errors"/p'
# A locale with more characters than ASCII.
rm run/twice*
LC_ALL=C.UTF-8 TERM=xterm "$phema" inspect -q run | sed '/dtype/,$d' | tail -n 6
LC_ALL=C.UTF-8 "$phema" inspect -q run | grep -c '[^ -~]'
# No line is wider than a terminal.
"$phema" inspect -q run | awk 'length > 80'
