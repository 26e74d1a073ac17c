# Every line fits 60 columns, but for commands, which are pasted. The words are those of 80 columns; wide terminals get the
# same lines.
for verb in synth search inspect weights plan design report plot verify diff join gen convert; do
    for help in -h --help; do
        COLUMNS=60 "$phema" $verb $help >narrow
        COLUMNS=80 "$phema" $verb $help >usual
        COLUMNS=140 "$phema" $verb $help | cmp - usual
        awk -v verb=$verb 'length > 60 && !/^  (posthoc-ema|srun) / && !/^usage/ && !/^ +--?[a-z]/ {print verb ": " $0}' narrow
        tr -d ' \n' <usual | cmp - <(tr -d ' \n' <narrow) || echo "$verb $help has other words"
    done
done
COLUMNS=60 "$phema" --help
