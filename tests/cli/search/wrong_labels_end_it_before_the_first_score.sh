# Averages that were updated every 10 steps, as no label says. No candidate is made, unless --checks warn is
# given. Then the warning is there before the scores, beside the result, and in the JSON.
"$phema" gen -q --count 16 --params 2K --input-sigma 0.05,0.28 --update-every 10 --hide-update-every run >/dev/null
look() {
    "$phema" search --progress none --sigma-rel 0.05,0.2 --tolerance 0.5 --evaluations 3 --exec 'sh score.sh {}' \
        "$@" run out
    echo "status $?"
}
cat >score.sh <<'EOT'
echo "score of ${1##*/}" >>scored
wc -c <"$1"
EOT
look
look --checks error -q
ls -d out scored 2>&1
echo "- --checks warn"
look --checks warn 2>notes
grep -n -e '^warning' -e '^best' -e sigma_rel.*score notes
echo "- again, quiet, as JSON"
look --checks warn --json -q >found.json
grep -e '"verdict"' -e '"reason"' found.json
sed -n '/"warnings"/,$p' found.json
echo "- off"
look --checks off -f --json -q | grep -e '"verdict"' -e '"warnings"' -e status
echo "- the labels that fit"
look --update-every 10 -f --json -q | grep -e '"verdict"' -e '"warnings"' -e status
