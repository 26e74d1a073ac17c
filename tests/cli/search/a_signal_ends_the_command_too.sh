# When a signal ends a search, the search ends its command and removes the candidates without a score.
"$phema" gen -q --count 4 run >/dev/null
cat >evaluate <<'EOT'
#!/bin/sh
if [ -e one ]; then
    sleep 600 &
    echo $! >child
    echo $$ >shell
    wait
fi
touch one
echo 1
EOT
chmod +x evaluate
runs() { grep -qs '^State:[[:space:]]*[^ZX]' "/proc/$1/status"; } # nobody may wait for what has ended
"$phema" search -q --sigma-rel 0.02:0.25 --keep best --exec './evaluate {}' run &
while [ ! -s shell ]; do sleep 0.05; done
kill -TERM $!
wait $!
echo "status $?"
for file in child shell; do
    for _ in $(seq 1200); do runs "$(cat $file)" || break; sleep 0.05; done
    runs "$(cat $file)" && echo "$file still runs"
done
ls search
