# A directory has a command as its name; no shell ever runs it. search refuses a command in which sh would
# run it, before it makes anything. Elsewhere the path is one argument, in functions and for several
# candidates.
"$phema" gen -q --count 2 run >/dev/null
# shellcheck disable=SC2016 # for the shells that search starts
{
    out='a$(touch bad)"`touch worse`"'"'"'$(touch worst)'
    cat >evaluate <<'EOT'
#!/bin/sh
[ $# = 1 ] && [ -f "$1" ] && [ "$1" = "$PHEMA_CANDIDATE" ] && printf '%s\n' "$1" >>seen && echo 1
EOT
    chmod +x evaluate
    search() {
        "$phema" search -q --sigma-rel 0.05,0.1 --tolerance 0.5 "$@" run "$out" >/dev/null
        echo "status $?"
    }
    for command in './evaluate "{}"' "./evaluate '{}'" './evaluate "a {} b"' './evaluate "$(echo {})"' \
        './evaluate `echo {}`' $'cat <<EOF | ./evaluate\n{}\nEOF' './evaluate # {}' \
        './evaluate $(({}))' './evaluate ${x:-{}}'; do
        search --shell --exec "$command"
    done
    search --exec 'sh -c "./evaluate {}"'
    search --exec "bash -euc './evaluate {} | cat'"
    ls
    echo "- what runs"
    search --shell --exec 'score() { ./evaluate {}; }; score | cat'
    rm -r -- "$out"
    search --shell --keep all --exec './evaluate $(printf %s "$PHEMA_CANDIDATE" >/dev/null) {}'
    rm -r -- "$out"
    search --shell --exec './evaluate "$PHEMA_CANDIDATE"'
    cat seen
    ls
}
