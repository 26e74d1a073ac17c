# Snapshots under wrong labels: the program says which, or which labels would fit, and predicts no error.
# The labels are the names: keys of the same length hide the metadata.
gen() { # DIR OPTIONS...
    "$phema" gen -q --no-sync --count 16 --params 5000 "${@:2}" "$1" >/dev/null
    LC_ALL=C sed -i 's/posthoc_ema\./posthoc_xxx./g' "$1"/*.safetensors
}
file() { # INDEX WIDTH
    printf 'snapshot-%07d-%s.safetensors' $((256 * $1)) "$2"
}
exchange() { # FILE FILE
    mv "$1" kept && mv "$2" "$1" && mv kept "$2"
}
bad() { # NAME COMMAND...: of a copy of the series
    rm -rf bad
    cp -r good bad
    echo "$1:"
    (cd bad && "${@:2}")
    "$phema" weights --json --sigma-rel 0.15 bad 2>messages | grep -oE '"verdict": "[a-z]*"|"total": [a-z0-9]*'
    grep '^warning: the snapshots' messages
}
gen good --seed 1
gen other --seed 2
gen rare --seed 1 --update-every 10

bad "another training" cp ../other/"$(file 7 0.050)" .
bad "a copy" cp "$(file 7 0.050)" "$(file 8 0.050)"
bad "two exchanged" exchange "$(file 7 0.050)" "$(file 7 0.100)"
last() {
    exchange "$(file 15 0.050)" "$(file 16 0.050)"
    exchange "$(file 15 0.100)" "$(file 16 0.100)"
}
bad "two times exchanged" last
bad "one width of two times exchanged" exchange "$(file 15 0.050)" "$(file 16 0.050)"
late() {
    for i in {15..1}; do
        for w in 0.050 0.100; do mv "$(file "$i" $w)" "$(file $((i + 1)) $w)"; done
    done
}
bad "all times late" late
half() {
    for i in {1..8}; do cp ../other/"$(file "$i" 0.050)" ../other/"$(file "$i" 0.100)" .; done
}
bad "half of another training" half
wide() {
    for i in {1..16}; do mv "$(file "$i" 0.100)" "$(file "$i" 0.280)"; done
}
bad "another width" wide
seldom() {
    rm ./*.safetensors
    cp ../rare/*.safetensors .
}
bad "updated every 10 steps" seldom

"$phema" weights -q --update-every 10 --max-error 1e-3 --sigma-rel 0.25 bad >/dev/null && echo "rightly said: predicted"
"$phema" weights -q --max-error 1 --sigma-rel 0.15 bad >/dev/null
echo "status $?"
"$phema" weights -q --checks error --sigma-rel 0.15 bad
echo "status $?"
"$phema" weights -q --checks off --max-error 1 --sigma-rel 0.15 bad >/dev/null
echo "status $?"
"$phema" weights -q --advise --max-error 1 --sigma-rel 0.15 bad
echo "status $?"
"$phema" synth -q --no-sync --checks error --sigma-rel 0.15 bad out.safetensors
echo "status $?"
[ ! -e out.safetensors ] && echo "nothing written"
# No name moves the cursor.
bad "a copy with a strange name" cp "$(file 7 0.050)" "$(file 8 0.050)"
for name in bad/snapshot-*; do mv "$name" "bad/$(printf 'a\033[31m')-${name#bad/snapshot-}"; done
"$phema" weights --sigma-rel 0.15 bad 2>&1 >/dev/null | grep '^warning: the snapshots'
"$phema" inspect -q bad | grep 'fit their labels'
