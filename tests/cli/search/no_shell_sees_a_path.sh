# The command gets the path as one word, for any directory name, also with --shell.
"$phema" gen -q --count 2 run >/dev/null
cat >evaluate <<'EOT'
#!/bin/sh
[ $# = 3 ] && [ -f "$3" ] && printf '%s|' "$@" >>words && echo 1
EOT
chmod +x evaluate
# shellcheck disable=SC2016 # for the command, not for this shell
for out in "a b;\$(touch bad)'\"*" -q; do
    "$phema" search -q --sigma-rel 0.05,0.1 --tolerance 0.5 --keep none \
        --exec './evaluate "two words" '\''$HOME'\'' {}' run -- "$out" >/dev/null
    "$phema" search -q --sigma-rel 0.05,0.1 --tolerance 0.5 --keep none --shell \
        --exec './evaluate one "$((1 + 1))" {} | cat' run -- "${out}2" >/dev/null
    cat words
    rm words
    echo
done
ls
