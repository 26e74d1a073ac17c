# With --resume and nothing to resume, a run makes the same files as without the option, and leaves no others. This
# holds in any form, with any number of threads, in one pass or several.
"$phema" gen -q --count 3 --steps 30 --params 200k --dtype f16 --no-sync run >/dev/null
copy="--into run/snapshot-0000030-0.100.safetensors"
for out in out.safetensors out.safetensors.zst "--shard-size 100k out" "$copy copy.safetensors"; do
    read -ra options <<<"$out"
    unset "options[-1]"
    rm -rf plain resumed && mkdir plain resumed
    for threads in 1 4; do
        "$phema" synth -q --no-sync -j$threads -f --sigma-rel 0.05:0.25:0.1 "${options[@]}" run "plain/{sigma}-${out##* }" >/dev/null
        "$phema" synth -q --no-sync -j$threads -f --resume --sigma-rel 0.05:0.25:0.1 "${options[@]}" run "resumed/{sigma}-${out##* }" >/dev/null
    done
    sed -i 's|resumed/|plain/|g' resumed/*.json 2>/dev/null # the command that is in it
    diff -r plain resumed && echo "same: $(ls resumed | wc -l)"
done
rm -rf resumed
limit=(--max-ram 12M)
[ -z "$sanitize" ] || limit=() # sanitizers have memory of their own
"$phema" synth -q --no-sync -j3 --resume "${limit[@]}" --sigma-rel 0.01:0.25:0.002 run resumed/ >/dev/null
"$phema" synth -q --no-sync -j3 --sigma-rel 0.01:0.25:0.002 run plain2/ >/dev/null
diff -r plain2 resumed && echo "same: $(ls resumed | wc -l)"
