# Commands that the program prints have the words of the user in sh, bash, zsh and fish, whatever names hold. Here
# posthoc-ema is a script that records its words.
mkdir bin in
cat >bin/posthoc-ema <<'END'
#!/bin/sh
printf '%s\0' "$@" >>"$RECORD"
END
chmod +x bin/posthoc-ema
names=("a b" "it's" "'" "\\" "a\\" "\\'" "'\\" "\\\\" "\\\\'x" "\\'\$(touch PWNED)\\'b" "\\\\'(touch PWNED)'" "\$HOME"
    "\`touch PWNED\`" "a;touch PWNED;" "a|touch PWNED" "a&b" ">PWNED" "<PWNED" "~" "=ls" "%self" "{a,b}" "*" "?"
    "[a]" "#a" "!a" "^a" "\"" "\"\$(touch PWNED)\"" "\\\"" "é" "\\x41" "\\n" "\\\$(touch PWNED)")
cd in || exit 99
touch a 'a b' b
# lines: what is printed; words: what it must mean
for name in "${names[@]}"; do
    "$phema" synth --sigma-rel 0.1 --dtype bf17 "$name" o.safetensors 2>&1 | sed -n 's/^  try: //p' >>../lines
    printf '%s\0' synth --sigma-rel 0.1 --dtype bf16 "$name" o.safetensors >>../words
    "$phema" plot "$name" 2>&1 | sed -n 's/^  try: //p' >>../lines
    printf '%s\0' plot error -o plot.svg "$name" >>../words
    "$phema" diff --tolerance 0.1x --allow-global "$name" "$name" b 2>&1 | sed -n 's/^  try: //p' >>../lines
    printf '%s\0' diff --tolerance 0.1 --allow-global "$name" "$name" b >>../words
    mkdir ../held
    "$phema" gen -q --count 4 --params 64 --tensors 1 "../held/$name" >/dev/null
    "$phema" inspect "../held/$name" | sed -n 's/^next: //p' >>../lines
    printf '%s\0' synth --sigma-rel 0.05:0.25:0.05 "../held/$name" sweep/ >>../words
    if [[ $name != *"{"* ]]; then # OUT with braces is a template
        "$phema" synth --part 1/2 --sigma-rel 0.1 "../held/$name" "../held/$name/o.safetensors" 2>&1 |
            grep -o 'posthoc-ema join.*' >>../lines
        printf '%s\0' join "../held/$name/o.safetensors" >>../words
    fi
    rm -r ../held
done
missing=
for shell in 'sh' 'bash --norc' 'zsh -f' 'fish --no-config'; do
    if ! command -v "${shell%% *}" >/dev/null; then
        missing+=" ${shell%% *}"
        continue
    fi
    # shellcheck disable=SC2086 # words
    RECORD=../recorded PATH=$PWD/../bin:$PATH $shell ../lines
    cmp ../words ../recorded || echo "${shell%% *} reads other words"
    rm ../recorded
done
echo "${#names[@]} names, $(wc -l <../lines) lines; files now:" ./* ../*
[ -z "$missing" ] || { echo "not installed:$missing; scripts/setup --test" >&2; exit 77; }
