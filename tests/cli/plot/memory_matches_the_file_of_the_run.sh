# Bars are the peaks of the stages, strokes the memory left at their ends, in one unit. A limit is a line.
cat >memory.jsonl <<'END'
{"stage":"open","elapsed_seconds":0.5,"rss_anon":{"baseline":0,"now":1048576,"peak":3145728},"allocated":{"baseline":0,"now":0,"peak":524288}}
{"stage":"accumulate","elapsed_seconds":65,"rss_anon":{"baseline":1048576,"now":2097152,"peak":4194304},"allocated":{"baseline":0,"now":262144,"peak":1048576},"device":{"baseline":0,"now":0,"peak":8388608}}
END
"$phema" plot memory memory.jsonl --max-ram 10MiB -o memory.svg --csv memory.csv
cat memory.csv
grep -oE '>[^<>]+</text>' memory.svg | sed -E 's/^>|<\/text>$//g'
