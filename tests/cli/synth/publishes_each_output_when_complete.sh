# Each of several outputs gets its name as soon as it is complete, and keeps the name when the run fails later. One
# pass names them one after another at its end. If memory requires several passes, each pass names its own.
[[ $sanitize ]] && echo "skipped: sanitizers have memory of their own" >&2 && exit 77
faults="env LD_PRELOAD=$(dirname "$phema")/tests/libfaults.so"
exec 2>&1
number() { grep -o "\"$1\": [0-9]*" "$2" | head -n 1 | sed 's/.*: //'; }
"$phema" gen -q --count 3 --steps 30 --params 60k --dtype f16 --no-sync run >/dev/null
arguments=(--no-sync --accumulate f64 --sigma-rel 0.05:0.25:0.0025 run)
"$phema" synth -q -j2 "${arguments[@]}" whole/ >/dev/null
names() { ls "$1" 2>/dev/null | sed 's/.*\(safetensors.*\)/\1/' | sort | uniq -c | sed 's/^ *//' | tr '\n' ' '; }
all_right() { for file in new/*.safetensors; do cmp "$file" "whole/${file##*/}"; done; }
echo "- in one pass, a name that cannot be given"
$faults FAULT_CALLS=rename,renameat2 FAULT_WITH=EIO FAULT_AT=31 "$phema" synth -q "${arguments[@]}" new/
echo "status $?: $(names new)"
all_right
"$phema" synth -q --skip-existing "${arguments[@]}" new/ | wc -l
diff -r whole new && echo "same" && rm -r new
"$phema" plan -q -j2 --json "${arguments[@]}" >plan.json
limit=$(($(number baseline plan.json) + 200000 + $(number sums plan.json) * 2 / 5 / 64 + 1000000))
arguments=(-j2 --max-ram "$limit" "${arguments[@]}")
"$phema" plan -q --json "${arguments[@]}" >plan.json
[ "$(number passes plan.json)" -ge 2 ] && echo "- in several passes"
first=$(number targets_per_pass plan.json)
echo "- a disk that fails when the last output gets its first tile: what the passes before have made is there"
$faults FAULT_CALLS=pwrite FAULT_PATH=-0.250.safetensors.partial FAULT_WITH=EIO FAULT_AT=2 "$phema" synth -q "${arguments[@]}" new/ 2>&1 | sed 's/; [0-9]* of/; some of/'
echo "status ${PIPESTATUS[0]}"
all_right
found=$(ls new | wc -l)
[ "$found" -ge "$first" ] && [ $((found % first)) = 0 ] && ! ls new | grep -qv 'safetensors$' && echo "whole passes"
"$phema" synth -q --skip-existing "${arguments[@]}" new/ | wc -l | grep -q "^$((81 - found))$" && echo "the others are made"
diff -r whole new && echo "same"
echo "- killed in the last pass, and gone on with"
rm -r new
{ $faults FAULT_CALLS=pwrite FAULT_PATH=-0.250.safetensors.partial FAULT_WITH=KILL FAULT_AT=2 "$phema" synth -q --resume "${arguments[@]}" new/; } 2>/dev/null
echo "status $?"
all_right
[ "$(ls new | grep -c 'safetensors$')" = "$found" ] && echo "whole passes"
"$phema" synth -q --resume "${arguments[@]}" new/ | wc -l | grep -q "^$((81 - found))$" && echo "the others are made"
diff -r whole new && echo "same"
