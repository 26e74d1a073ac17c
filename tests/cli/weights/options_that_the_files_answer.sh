# Widths that the files have are not replaced by an option, and a layout of another clock is refused.
"$phema" gen -q --count 2 --steps 64 --params 200 --tensors 2 run >/dev/null
"$phema" weights --input-sigma 0.05 --sigma-rel 0.1 run 2>&1 >/dev/null | grep input-sigma
"$phema" weights --input-profile raw --sigma-rel 0.1 run 2>&1 >/dev/null | grep input-profile
# weights from a pipe, which can be read once only
"$phema" weights -q --json --sigma-rel 0.1 run >w.json
"$phema" weights -q --json --weights <(cat w.json) run | grep -c '"weights"'
mkfifo nobody
"$phema" weights -q --weights nobody run 2>&1
for file in run/*; do [ -d "$file" ] || mv "$file" "run/network-${file#run/}"; done
remedy weights --layout edm2 --sigma-rel 0.1 run
"$phema" weights --layout edm2 --sigma-rel 0.1 run >/dev/null 2>&1
echo "status $?"
