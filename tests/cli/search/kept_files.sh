# --keep best, all or none. search never removes files that it did not make, whatever scores.csv contains.
"$phema" gen -q --count 4 run >/dev/null
score="sh -c 'echo \"\$1\" | sed s/newest/0.9/' sh {}"
search() { "$phema" search -q --sigma-rel 0.05,0.1,0.2 --tolerance 0.5 --exec "$score" \
    --score-regex '(0\.[0-9]+)\.safetensors$' "$@"; }
for keep in best all none; do
    search --keep $keep run $keep
    ls $keep
done
# A second search makes a scored candidate again if the first did not keep it.
search run none
ls none
# Files of the user: one equal to a candidate, and one of another kind that scores.csv names.
mkdir mine
"$phema" synth -q --sigma-rel 0.1 run mine/ >/dev/null
search --keep none run mine
ls mine
printf 'mine' >mine/notes.txt
printf '# made [0.1, 4096, "notes.txt"]\n' >>mine/scores.csv
search --keep none run mine
ls mine
# A file with the name of a candidate but other content.
mkdir way
printf 'mine' >way/phema-0004096-0.100.safetensors
search run way
echo "status $?"
cat way/phema-0004096-0.100.safetensors
echo
ls way
