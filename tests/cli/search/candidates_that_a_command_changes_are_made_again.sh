# A command may overwrite, remove, move, cut or link its candidate, or the next one: what stays is what the program made.
"$phema" gen -q --count 4 --params 200 --tensors 2 run >/dev/null
"$phema" synth -q --sigma-rel 0.1,0.2,0.05 run true/ >/dev/null
"$phema" synth -q --profile newest run true/ >/dev/null
mkdir bin
cat >bin/score <<'END'
#!/bin/sh
# changes the candidate as $1 says, which is the best at 0.2
set -- "$1" "$2" "$(dirname "$2")"
[ ! -f "true/${2##*/}" ] || cmp -s "$2" "true/${2##*/}" || echo "$1 gave another ${2##*/}" >>wrong
case $1 in
overwrite) echo hello >"$2" ;;
same_size) printf X | dd of="$2" bs=1 seek=700 conv=notrunc 2>/dev/null ;;
append) echo >>"$2" ;;
cut) truncate -s 300 "$2" ;;
remove) rm "$2" ;;
move) mv "$2" "$3/../moved" && ln -s ../moved "$2" ;;
link) ln -sf ../run/truth "$2" ;;
all) for file in "$3"/*; do [ "${file##*/}" = scores.csv ] || echo hello >"$file"; done ;;
shards) for file in "$2"/*.safetensors; do echo hello >"$file"; done ;;
sidecar) rm "$2.json" ;;
adds) touch "$2/more" ;;
esac
case $2 in *0.200*) echo 1 ;; *0.100*) echo 2 ;; *0.050*) echo 3 ;; *) echo 4 ;; esac
END
chmod +x bin/score
search() { # how, options and OUT
    local how=$1
    shift
    "$phema" search -q --sigma-rel 0.05,0.1,0.2 --tolerance 0.5 --exec "bin/score $how {}" run "$@"
}
for how in nothing overwrite same_size append cut remove move link all; do
    for keep in best all; do
        echo "- $how, --keep $keep"
        search $how --keep $keep out
        for file in out/*.safetensors; do
            cmp "$file" "true/${file##*/}" && [ ! -L "$file" ] && echo "${file##*/}: right"
        done
        ls out | grep -v safetensors
        rm -rf out moved
    done
done 2>&1
cat wrong 2>/dev/null # candidates that were changed before their scores
echo "- none stays"
search overwrite --keep none out 2>&1
ls out
rm -r out
echo "- the command fails"
search "overwrite {} ; false" --shell out >/dev/null 2>&1
echo "status $?"
ls out
rm -r out
echo "- directories and copies"
for how in nothing shards adds; do
    search $how --shard-size 400 out 2>&1
    "$phema" diff -q out/phema-0004096-0.200 true/phema-0004096-0.200.safetensors && ls out/*
    rm -r out
done
edm2="$fixtures/edm2/snapshots"
"$phema" search -q --sigma-rel 0.1,0.2 --tolerance 0.5 --exec "bin/score sidecar {}" "$edm2" out 2>&1
ls out
"$phema" verify -q out/*0.200.pkl && echo right
echo "- a file that was there before"
mkdir mine
cp true/*0.100* mine/
search append mine 2>&1
echo "status $?"
