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
"$phema" search -q --sigma-rel 0.02:0.25 --keep best --exec './evaluate {}' run &
while [ ! -s shell ]; do sleep 0.05; done
kill -TERM $!
wait $!
echo "status $?"
for file in child shell; do
    for _ in $(seq 100); do kill -0 "$(cat $file)" 2>/dev/null || break; sleep 0.05; done
    kill -0 "$(cat $file)" 2>/dev/null && echo "$file still runs"
done
ls search
