# synth uses the printed weights. The same holds for a manifest whose files have their own dtypes and
# update intervals.
"$phema" gen -q --count 8 --dtype f16 --update-every 10 run >/dev/null
{
    echo '{"snapshots": ['
    for file in run/snapshot-*; do
        name=$(basename "$file" .safetensors)
        time=$((10#$(cut -d- -f2 <<<"$name")))
        echo "{\"file\": \"$(basename "$file")\", \"time\": $time, \"sigma_rel\": $(cut -d- -f3 <<<"$name")}"
    done | sed '$!s/$/,/'
    echo ']}'
} >run/all.json
for at in 4096 3000; do
    "$phema" weights -q --json --sigma-rel 0.15 --at $at run/all.json >weights-$at.json
    "$phema" synth -q --weights weights-$at.json run/all.json given-$at.safetensors
    "$phema" synth -q --sigma-rel 0.15 --at $at run solved-$at.safetensors
    "$phema" diff given-$at.safetensors solved-$at.safetensors
done
sed 's/"sigma_rel": 0.050/"profile": {"kind": "power", "gamma": 3}/' run/all.json >run/wrong.json
"$phema" weights -q --sigma-rel 0.1 run/wrong.json
echo $?
