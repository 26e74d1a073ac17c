# Of 64 times, eight of each width are drawn, the newest among them.
"$phema" gen -q --no-sync --count 64 --steps 640 run >/dev/null
"$phema" plot -q profiles --sigma-rel 0.1 run -o profiles.csv
awk -F, '$2 ~ /^input/ { print $2 }' profiles.csv | sort -u | awk '{ n[$3]++ } END { for (s in n) print s, n[s] }' | sort
grep -o 'input sigma_rel 0.05 at 640' profiles.csv | sort -u
# The panel names the range that cuts the high ones; the profile error, which says least, is in no picture.
"$phema" plot -q profiles --sigma-rel 0.1 run -o profiles.svg
grep -o 'weight per [^<]*' profiles.svg
"$phema" plot -q error run -o error.csv
"$phema" plot -q error run -o error.svg
tail -n +2 error.csv | cut -d, -f1,2 | sort -u
grep -l 'profile error' error.svg error.csv || echo 'no profile error'
