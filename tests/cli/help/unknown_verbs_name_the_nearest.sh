exec 2>&1
for verb in sinth wieghts Inspect dif gne konvert synthesize frobnicate '' --verbose; do
    "$phema" "$verb"
    echo "$?"
done
