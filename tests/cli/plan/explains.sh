# The readable plan, without figures of this machine.
"$phema" gen -q --count 3 --steps 40 --params 60k --tensors 30 --dtype f32 run >/dev/null
"$phema" plan -qv -j2 --sigma-rel 0.05,0.1 run sweep/ | sed -E 's/[0-9.]+ (GiB|MiB|KiB|s |B)/N /g; s/ +N/ N/; s/[0-9]+ threads?/N threads/; s/, sum.*//; s/ +$//'
# --assume-bandwidth replaces the measurement.
"$phema" plan -q --json --assume-bandwidth 1M --sigma-rel 0.1 run >plan.json
grep -E '"(add|fetch|store)"' plan.json
awk -F '[:,]' '/"seconds"/ { print ($2 > 1.5 && $2 < 3 ? "1.7 s and a little" : $2) }' plan.json
# plan changes neither tensors nor outputs.
ls
"$phema" plan -q --sigma-rel 0.1
echo "status $?"
"$phema" plan -q --sigma-rel 0.1 --max-ram 100k run 2>err
echo "status $?"
sed -E 's/at least [0-9.]+ [KM]iB/at least N/' err
rm err
"$phema" plan -q --sigma-rel 0.01 --max-error 1e-9 run
echo "status $?"
