# --keep: the best, all or none; never what was there before, whatever scores.csv says.
"$phema" gen -q --count 4 run >/dev/null
score='echo {}'
search() { "$phema" search -q --sigma-rel 0.05,0.1,0.2 --tolerance 0.5 --exec "$score" \
    --score-regex '(0\.[0-9]+)\.safetensors$' "$@"; }
for keep in best all none; do
    search --keep $keep run $keep
    ls $keep
done
# one that a run without it has scored is made again
search run none
ls none
# files of the user: one that is what would be made, one of another kind with such a name
mkdir mine
"$phema" synth -q --sigma-rel 0.1 run mine/ >/dev/null
search --keep none run mine
ls mine
printf 'mine' >mine/notes.txt
printf '# made [0.1, 4096, "notes.txt"]\n' >>mine/scores.csv
search --keep none run mine
ls mine
# one in the way that is something else
mkdir way
printf 'mine' >way/phema-0004096-0.100.safetensors
search run way
echo "status $?"
cat way/phema-0004096-0.100.safetensors
echo
ls way
