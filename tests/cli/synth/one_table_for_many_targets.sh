# Many targets: a table of at most 12 rows, the rest in one line, all with -v. Large errors are marked, and one
# cause is one warning. One target is a line.
"$phema" gen -q --count 8 run >/dev/null
synth() { "$phema" synth -f --sigma-rel "$@" 2>&1 >/dev/null | sed -E 's/[0-9.]+ s \(.*/.../'; }
synth 0.15 run out.safetensors
synth 0.02,0.03,0.1 run few/
synth 0.01:0.25:0.01 run many/
echo "with -v: $(synth 0.01:0.25:0.01 -v run many/ | grep -cE '^ +0\.[0-9]+ +4096')"
echo "- one warning"
synth 0.001,0.002,0.003,0.004,0.005,0.1 run narrow/ | sed -n '/^warning/,/^[^ w]/p'
