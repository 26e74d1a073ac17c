# Anyone can choose names: of files, tensors, metadata, globals of pickles, profiles, devices. No verb prints
# control characters, invisible characters or bidirectional controls to stdout, stderr or its pictures.
# No name starts a line of its own. JSON escapes these characters.
esc=$'\e[31m' c1=$'\xc2\x9b31m' bidi=$'\xe2\x80\xae\xe2\x81\xa6\xd8\x9c\xe2\x80\x8f' \
    hidden=$'\xe2\x80\x8b\xef\xbb\xbf\xe2\x80\xa8\xf3\xa0\x81\x81\xc2\xad' line=$'\nFAKE: equal'
bad=$c1$bidi$hidden
raw='[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f\xad]|\xd8\x9c|\xe2\x80[\x8b-\x8f\xa8-\xae]|\xe2\x81[\xa0-\xaf]|\xef\xbb\xbf|\xf3\xa0[\x80\x81]'
look() { # what it is, file
    echo "$1: $(LC_ALL=C grep -acP "$raw" "$2") raw, $(grep -ac '^FAKE' "$2") lines of a name," \
        "$(LC_ALL=C grep -acE '\\(u202e|xe2)' "$2") escaped"
}
try() {
    "$phema" "$@" >out 2>err
    echo "${1%%[!a-z]*}: status $?"
    look ' stdout' out
    look ' stderr' err
    rm out err
}
model() { # file, value: two tensors of that value, times and widths from the name
    local header='{"__metadata__":{"k'$bad'":"v'$bad'\u001b[31m\nFAKE"},"w'$bad'":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"n\n'$bad'":{"dtype":"I64","shape":[1],"data_offsets":[8,16]}}'
    local size=${#header} # LC_ALL=C: in bytes
    printf '%b%s%b' "\\x$(printf %02x $((size % 256)))\\x$(printf %02x $((size / 256)))\\0\\0\\0\\0\\0\\0" \
        "$header" "$2$2\\0\\0\\0\\0\\0\\0\\0\\0" >"$1"
}
run=run$bad$esc$line
mkdir "$run"
i=0
for t in 1 2 3 4; do
    i=$((i + 1))
    model "$run/a$bad$line-000000$t-0.050.safetensors" "\\0\\0\\x8$i\\x3f"
    model "$run/a$bad$line-000000$t-0.100.safetensors" "\\0\\0\\x9$i\\x3f"
done
model "$run/left$bad$line.pt" "\\0\\0\\0\\0"
one=$run/a$bad$line-0000001-0.050.safetensors two=$run/a$bad$line-0000002-0.100.safetensors
try inspect -v "$one"
try inspect -v "$run"
try inspect --json "$one"
try inspect --json "$run"
try diff -v "$one" "$two"
try diff --json "$one" "$two"
try weights --sigma-rel 0.07 "$run"
try weights --json --rule "w$bad=0.06" --sigma-rel 0.07 "$run"
try plan -v --sigma-rel 0.07 --assume-bandwidth 1G "$run" "out$bad$line.safetensors"
try plan --json --sigma-rel 0.07 --assume-bandwidth 1G "$run" "out$bad$line.safetensors"
echo "- errors"
try synth -v --sigma-rel 0.07 "$run" "nowhere$bad$line/out.safetensors"
try synth --sigma-rel 0.07 --include "x$bad$line" "$run" "out.safetensors"
try synth --profile "ema:$bad$line" "$run" "out.safetensors"
try synth --device "cuda:$bad$line" --sigma-rel 0.07 "$run" "out.safetensors"
try synth --at "$bad$line" --sigma-rel 0.07 "$run" "out.safetensors"
try weights "--opt$bad$line" "$run"
try "verb$bad$line"
printf '\x80\x02cevil%s\nname%s\n)R.' "$bad" "$bad" >"evil$bad$line.pkl"
try inspect "evil$bad$line.pkl"
printf '{"snapshots": [{"%s": 1}]}' "$bad" >"m$bad$line.json"
try weights --sigma-rel 0.07 "m$bad$line.json"
printf '{"snapshots": %s' "$bad" >"m$bad$line.json"
try weights --sigma-rel 0.07 "m$bad$line.json"
echo "- what was made"
"$phema" synth -q --sigma-rel 0.07 "$run" "out$bad$line.safetensors" >paths
try verify -v "out$bad$line.safetensors"
try verify --json "out$bad$line.safetensors"
try inspect -v "out$bad$line.safetensors"
try synth --skip-existing --sigma-rel 0.07 "$run" "out$bad$line.safetensors"
try plot weights --json --sigma-rel 0.07 "$run" -o "w$bad$line.svg" --csv "w$bad$line.csv"
try plot profiles --profile ema:1 "$run" -o p.pdf
try report --json --sigma-rel 0.07 --title "t$bad$line" "$run" -o "r$bad$line.html"
try search --json --sigma-rel 0.05,0.1 --tolerance 0.5 --exec 'wc -c {}' --score-regex '^[0-9]+' "$run" "s$bad"
for part in 1 2; do
    "$phema" synth -q --sigma-rel 0.07 --part $part/2 "$run" "j$bad$line.safetensors"
done
try join --json "j$bad$line.safetensors"
look svg "w$bad$line.svg"
look csv "w$bad$line.csv"
look html "r$bad$line.html"
look scores.csv "s$bad/scores.csv"
echo "- paths for scripts are as they are, for people they are shown"
[ "$(cat paths)" = "out$bad$line.safetensors" ] && echo "as it is"
cat >again <<'EOT'
"$phema" synth -q -f --sigma-rel 0.07 "$run" "out$bad$line.safetensors"
EOT
export run bad line
script -qec 'bash again' /dev/null </dev/null | tr -d '\r' >shown
look "on a terminal" shown
cat shown
