# Colours: on a terminal, unless the environment or an option says otherwise; never in JSON.
"$phema" gen -q run >/dev/null
bold=$'\033\\[1m'
count() { grep -c "$bold"; }
echo "terminal: $(at_columns 80 "$phema" weights -q --sigma-rel 0.07 run | count)"
echo "NO_COLOR: $(at_columns 80 env NO_COLOR=1 "$phema" weights -q --sigma-rel 0.07 run | count)"
echo "dumb: $(at_columns 80 env TERM=dumb "$phema" weights -q --sigma-rel 0.07 run | count)"
echo "--no-color: $(at_columns 80 "$phema" weights -q --no-color --sigma-rel 0.07 run | count)"
echo "--color never: $(at_columns 80 "$phema" weights -q --color never --sigma-rel 0.07 run | count)"
echo "pipe: $(env -u NO_COLOR TERM=xterm "$phema" weights -q --sigma-rel 0.07 run | count)"
echo "pipe, forced: $(env -u NO_COLOR CLICOLOR_FORCE=1 "$phema" weights -q --sigma-rel 0.07 run | count)"
echo "pipe, NO_COLOR and forced: $(CLICOLOR_FORCE=1 "$phema" weights -q --sigma-rel 0.07 run | count)"
echo "pipe, --color always: $("$phema" weights -q --color always --sigma-rel 0.07 run | count)"
echo "JSON: $("$phema" weights -q --json --color always --sigma-rel 0.07 run | grep -c $'\033')"
echo "alarm: $("$phema" weights --json --color always --sigma-rel 0.01 run 2>&1 >/dev/null | grep -c $'\033\\[31m')"
