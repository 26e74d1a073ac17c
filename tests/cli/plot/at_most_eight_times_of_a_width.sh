# Of 64 times, eight of each width are drawn, the newest among them.
"$phema" gen -q --no-sync --count 64 --steps 640 run >/dev/null
"$phema" plot -q profiles --sigma-rel 0.1 run -o profiles.csv
awk -F, '$2 ~ /^input/ { print $2 }' profiles.csv | sort -u | awk '{ n[$3]++ } END { for (s in n) print s, n[s] }' | sort
grep -o 'input sigma_rel 0.05 at 640' profiles.csv | sort -u
