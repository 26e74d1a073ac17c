# fixtures/refuse/expected.json has the word that each refusal must contain.
sed -n 's/^ "\(.*\)": "\(.*\)".*/\1 \2/p' "$fixtures/refuse/expected.json" |
    while read -r file word; do
        "$phema" inspect "$fixtures/refuse/$file" 2>err
        echo "$? $(wc -l <err) $(grep -o -m 1 -- "$word" err | head -n 1) $file"
        grep -q "^posthoc-ema: $fixtures/refuse/$file: " err || cat err
    done
