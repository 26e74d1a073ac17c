# search writes scores.csv only if it is this user's own file and a search wrote it, with or without --force.
exec 2>&1
"$phema" gen -q --count 2 --params 100 --no-sync run >/dev/null
search() {
    "$phema" search -q --sigma-rel 0.05,0.1 --tolerance 0.5 --exec 'echo 1 {}' --score-regex ^1 "$@" run
    echo "status $?"
}
printf 'a,b\n1,2\n' >mine.csv
cp mine.csv before.csv
for force in "" --force; do
    echo "- what is no search's${force:+, with $force}"
    for what in link "hard link" copy FIFO directory; do
        rm -rf search && mkdir search
        case $what in
        link) ln -s ../mine.csv search/scores.csv ;;
        hard*) ln mine.csv search/scores.csv ;;
        copy) cp mine.csv search/scores.csv ;;
        FIFO) mkfifo search/scores.csv ;;
        directory) mkdir search/scores.csv ;;
        esac
        # shellcheck disable=SC2086 # nothing, or a word
        search $force
        cmp mine.csv before.csv
        [ "$what" != copy ] || cmp search/scores.csv before.csv
        ls search
    done
done
echo "- a link to nothing makes nothing"
rm -rf search && mkdir search && ln -s ../new.csv search/scores.csv
search
[ ! -e new.csv ] || echo "was made"
echo "- a link to the scores of a search"
rm -rf search && search >/dev/null && mv search found && mkdir search && ln -s ../found/scores.csv search/scores.csv
cp found/scores.csv before.csv
search
search --force
cmp found/scores.csv before.csv
echo "- an empty one, and one that was being begun"
rm -rf search && mkdir search && touch search/scores.csv
search
rm -rf search && mkdir search && printf '# posthoc-ema sea' >search/scores.csv
search --force
