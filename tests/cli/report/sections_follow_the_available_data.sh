# Sections depend on the data that the user gives and on known profiles. The rest of the page remains.
"$phema" gen -q --count 4 run >/dev/null
sections() { "$phema" report -q "$@" -o page.html --force >/dev/null && grep -oE 'section id="[a-z]+"' page.html | sed 's/.*id=//' | tr '\n' ' '; echo; }
sections run
sections --sigma-rel 0.07 run
sections --profile window:1k run
"$phema" weights -q --json --sigma-rel 0.07 run >w.json
sections --weights w.json run
"$phema" synth -q --sigma-rel 0.07 --profile-memory memory.jsonl run out.safetensors >/dev/null
printf '0.05,3\n0.1,2\n0.15,nan\n' >scores.csv
sections --scores scores.csv --memory memory.jsonl run
# More averages than a picture can hold.
sections --sigma-rel 0.05:0.16:0.01 run
grep -o 'drawn of the first [0-9]* averages\|of the first [0-9]* averages; weights' page.html
# A manifest without files; snapshots of unknown widths.
printf '{"snapshots": [{"time": 1000, "sigma_rel": 0.05}, {"time": 2000, "sigma_rel": 0.05}]}' >m.json
sections --sigma-rel 0.07 m.json
"$phema" inspect -q --json "$fixtures/ema_pytorch/snapshots" | sed -n 's/.*"file": "\(0[^"]*\)".*/\1 1/p' >list
sections --weights list "$fixtures/ema_pytorch/snapshots"
# Warnings, gaps and rules.
rm run/*2048-0.050*
sections --sigma-rel 0.004 --rule 'bias=0.06' run
grep -oE '<p class="warning">[^<]*|<li>(missing|rule)[^<]*' page.html | cut -c1-90
