# A failing command: the message has its status and last lines. Scored candidates stay, and the same search
# resumes.
"$phema" gen -q --count 4 run >/dev/null
cat >evaluate <<'EOT'
#!/bin/sh
echo "$1" >>asked
if [ "$(wc -l <asked)" = 3 ]; then
    for i in $(seq 12); do echo "line $i" >&2; done
    printf 'out of memory: \033[31mbad\033[0m\n\n' >&2
    exit 7
fi
echo 1
EOT
chmod +x evaluate
"$phema" search --progress none --sigma-rel 0.05,0.1,0.2 --tolerance 0.5 --exec './evaluate {}' run
echo "status $?"
ls search
"$phema" search -q --sigma-rel 0.05,0.1,0.2 --tolerance 0.5 --exec './evaluate {}' run
# Other failures.
try() { "$phema" search -q --sigma-rel 0.05,0.1 --exec "$@" run other; echo "status $?"; }
try './nothing {}'
try "sh -c 'echo well, \"\$1\"' sh {}"
try 'true {}'
try "sh -c 'kill -9 \$\$' sh {}"
try "sh -c 'sleep 600' sh {}" --timeout 0.2
find other -type f
