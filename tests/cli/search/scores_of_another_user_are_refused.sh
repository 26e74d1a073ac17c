# search neither resumes nor empties the scores of another user, not even as root.
[ "$(id -u)" = 0 ] || { echo "making files of other users needs root" >&2 && exit 77; }
exec 2>&1
"$phema" gen -q --count 2 --params 100 --no-sync run >/dev/null
search() {
    "$phema" search -q --sigma-rel 0.05,0.1 --tolerance 0.5 --exec 'echo 1 {}' --score-regex ^1 "$@" run
    echo "status $?"
}
search
chown 65534 search/scores.csv
cp search/scores.csv before.csv
search
search --force
cmp search/scores.csv before.csv
chmod 666 search/scores.csv
search
