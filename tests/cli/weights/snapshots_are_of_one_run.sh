# The recorder writes the id of its run into each snapshot. Snapshots of two runs are no series, in a directory,
# a list or a manifest; --run chooses one of them by the beginning of its id.
gen() { # DIR PARAMS
    "$phema" gen -q --no-sync --count 4 --steps 4000 --tensors 3 --params "$2" "$1" >/dev/null
}
name() { # ID, of 6 characters, FILE...: the id in the place of the unit
    LC_ALL=C sed -i "s/\"posthoc_ema.unit\":\"steps\"/\"posthoc_ema.run\":\"$1\"/" "${@:2}"
}
again() {
    # shellcheck disable=SC2016 # eval expands it
    eval "$(sed -n 's/^  try: posthoc-ema /"$phema" /p' err)"
}
exec 2>&1
gen run 60
name 3f2a0b run/*-0001000-0.050.* run/*-0002000-*
name 3f9d11 run/*-000[34]000-*
echo "- two runs, and a snapshot of none"
"$phema" weights --sigma-rel 0.07 run || echo "$?"
"$phema" synth -q --sigma-rel 0.07 run out.safetensors 2>err || echo "$?"
again
"$phema" verify -q out.safetensors && echo verified
ls run/*.safetensors >list.txt
"$phema" inspect @list.txt || echo "$?"
printf '{"snapshots": [{"file": "run/%s", "time": 2000, "sigma_rel": 0.05},
    {"file": "run/%s", "time": 4000, "sigma_rel": 0.05}]}' snapshot-0002000-0.050.safetensors \
    snapshot-0004000-0.050.safetensors >both.json
"$phema" plan --sigma-rel 0.07 --at 4000 both.json out.safetensors || echo "$?"
echo "- one of them: times are counted among its own"
"$phema" inspect --run 3f2 run
"$phema" inspect -q --json --run 3f2a0b run | grep -A 2 '"runs"'
"$phema" inspect -q --json --run 3f2a0b run | grep -c '"run": "3f2a0b"}'
"$phema" weights -q --run 3f2a --last 1 --sigma-rel 0.07 run
"$phema" weights -q --from 3000 --sigma-rel 0.07 run >/dev/null && echo "--from leaves one run"
echo "- ids that choose none or two"
for id in 3f x ''; do
    "$phema" weights --run "$id" --sigma-rel 0.07 run || echo "$?"
done
gen none 60
"$phema" weights --run 3f --sigma-rel 0.07 none || echo "$?"
echo "- one run, and snapshots of none"
rm run/*-000[34]000-*
"$phema" inspect run
echo "- runs of two models"
gen other 90
name 9d11c4 other/*.safetensors
cp other/*-000[34]000-* run
"$phema" synth --sigma-rel 0.07 run other.safetensors || echo "$?"
"$phema" synth -q --run 9 --sigma-rel 0.07 run other.safetensors
