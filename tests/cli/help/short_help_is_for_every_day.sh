# -h: examples and the options of every day; --help: all options.
for verb in synth weights search inspect diff; do
    "$phema" $verb -h >short
    "$phema" $verb --help >long
    grep -c '^ .*--[a-z]' short
    head -n 5 short
    tail -n 1 short
    [ "$(wc -l <short)" -le "$(wc -l <long)" ] || echo "$verb: -h is longer than --help"
    sed '$d' short | grep -vxFf long # nothing that --help lacks
done
true
