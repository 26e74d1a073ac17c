# Lines fit terminals of 60, 80 and 140 columns. They break between words, tables between columns: every
# width shows the same words. COLUMNS decides for pipes.
"$phema" gen -q --count 8 run >/dev/null
words() { tr -s ' ' '\n' | grep -v '[^ -~^]' | sort -u; }
shows() { # columns, command: what it prints on a terminal, without colours
    at_columns "$1" env NO_COLOR=1 "$phema" "${@:2}"
}
for columns in 140 80 60; do
    shows $columns weights -v --sigma-rel 0.05:0.25:0.025 --last 2 run >"weights.$columns"
    shows $columns inspect run | grep -v '^next: ' >"inspect.$columns"
    for page in weights inspect; do
        widest=$(LC_ALL=C.UTF-8 wc -L <"$page.$columns")
        [ "$widest" -le $columns ] || echo "$page at $columns: a line of $widest"
        cmp <(words <$page.140) <(words <"$page.$columns")
    done
    echo "$columns columns: $(grep -c '^  file' "weights.$columns") blocks of weights"
done
cat weights.60
COLUMNS=60 "$phema" weights -v --sigma-rel 0.05:0.25:0.025 --last 2 run >piped 2>&1
diff <(sort weights.60) <(sort piped)
