# Hostile or mistaken files: the message names the file and the line, and nothing is written.
try() {
    printf '%b' "$2" >"$1"
    "$phema" plot "${3:-sweep}" "$1" -o a.svg 2>&1
    echo "status $?"
}
try empty.csv ''
try none.csv '\n\n'
try names.csv 'sigma,score\n0.1,1\n'
try width.csv 'sigma_rel,score\n0.1,1\n0.5,1\n'
try score.csv 'sigma_rel,score\n0.1,1;2\n'
try nul.csv 'sigma_rel,score\n0.1,1\0\n'
try binary.csv '\xff\xfe\x01,\x02\n'
try terminal.csv 'sigma_rel,score\n0.1,\e]0;owned\a\n'
try nan.csv 'sigma_rel,score\n0.1,nan\n'
try none.jsonl '\n' memory
try other.jsonl '[1, 2]\n' memory
try cut.jsonl '{"stage":"open","elapsed_seconds":1,"rss_anon":{"peak":1' memory
try peak.jsonl '{"stage":"open","elapsed_seconds":1,"rss_anon":{"now":1,"peak":-1}}\n' memory
try now.jsonl '{"stage":"open","elapsed_seconds":1,"rss_anon":{"peak":1}}\n' memory
try time.jsonl '\n{"stage":"open"}\n' memory
for _ in $(seq 65); do echo '{"stage":"s","elapsed_seconds":1}'; done >many.jsonl
"$phema" plot memory many.jsonl -o a.svg 2>&1
truncate -s 17M large.csv
"$phema" plot sweep large.csv -o a.svg 2>&1
"$phema" plot sweep missing.csv -o a.svg 2>&1
"$phema" plot sweep . -o a.svg 2>&1
ls -- *.svg* 2>&1
