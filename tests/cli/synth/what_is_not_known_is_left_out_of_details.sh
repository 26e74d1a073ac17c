# -v prints no column of question marks, and no line about a driver that nobody asked for.
"$phema" gen -q --no-sync run >/dev/null
"$phema" synth -v --sigma-rel 0.1 run out.safetensors >text 2>&1
grep -c . text | awk '{ print ($1 > 3 ? "details are printed" : "no details") }'
grep -n -e '?' -e 'no NVIDIA' text || echo "all are known"
"$phema" plan -v --sigma-rel 0.1 run out.safetensors 2>&1 | grep -n -e '?' -e 'no NVIDIA' || echo "in a plan as well"
