# When a search is killed, its command ends, with all processes that the command started. A background
# process of an earlier command that has finished keeps running.
"$phema" gen -q --count 4 run >/dev/null
cat >evaluate <<'EOT'
#!/bin/sh
sleep 600 &
echo $! >>children
[ "$(wc -l <children)" -lt 2 ] || { echo $$ >shell; wait; }
echo 1
EOT
chmod +x evaluate
runs() { grep -qs '^State:[[:space:]]*[^ZX]' "/proc/$1/status"; }
"$phema" search -q --sigma-rel 0.02:0.25 --exec './evaluate {}' run &
while [ ! -s shell ]; do sleep 0.05; done
{ read -r first && read -r second; } <children
shell=$(cat shell)
runs "$first" && runs "$second" && runs "$shell" && echo both run
{ kill -KILL $! && wait $!; } 2>/dev/null
for _ in $(seq 1200); do
    runs "$second" || runs "$shell" || break
    sleep 0.05
done
for process in "$second" "$shell"; do runs "$process" && echo "$process still runs"; done
runs "$first" && echo what was left in the background runs
kill "$first"
