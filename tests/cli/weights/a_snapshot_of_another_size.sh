# A snapshot far larger than the newest, or zero, or not finite, does not show how the parameters moved.
# The metric is then walk, and a warning has the snapshot's name and size. Every verb that solves continues.
odd=snapshot-0002048-0.100.safetensors
scaled() { # dtype factor: run/ with that snapshot times the factor
    rm -rf run
    "$phema" gen -q --dtype "$1" run >/dev/null
    echo "$odd $2" >weights.txt
    "$phema" synth -q -f --overflow inf --weights weights.txt --at 2048 run scaled.safetensors \
        2>/dev/null >/dev/null
    # The series would leave out a snapshot with the metadata of an average.
    LC_ALL=C sed s/posthoc_ema/posthoc_abc/g scaled.safetensors >run/$odd
}
metric() {
    "$phema" weights -v --sigma-rel 0.12 run 2>&1 >/dev/null | grep -e labels -e "--metric"
    echo "status ${PIPESTATUS[0]}"
}
while read -r dtype factor; do
    echo "- $dtype times $factor"
    scaled "$dtype" "$factor"
    metric
done <<'EOT'
f32 100
f32 1e6
f32 1e12
f32 0
bf16 100
bf16 1e6
f16 1e6
f16 1e12
EOT
echo "- the newest is zero"
scaled f32 0
mv run/$odd run/snapshot-0004096-0.100.safetensors
metric
echo "- every verb"
scaled bf16 1e6
"$phema" synth --sigma-rel 0.12 run out.safetensors 2>&1 | grep -e '^warning: the snapshots'
"$phema" verify -q out.safetensors
"$phema" plan --sigma-rel 0.12 run 2>&1 | grep -c '^warning: the snapshots'
"$phema" plot weights -q --sigma-rel 0.12 run -o w.svg
"$phema" report -q --sigma-rel 0.12 run -o r.html
grep -c 'class="warning">the snapshots do not fit .*times the norm of the newest' r.html
"$phema" search --checks warn --sigma-rel 0.05,0.12 --tolerance 0.5 --evaluations 2 --exec 'wc -c {}' --score-regex '[0-9]+' run 2>/dev/null
"$phema" weights -q --metric walk --json --sigma-rel 0.12 run | grep -o '"metric": "[a-z]*"'
"$phema" inspect run >/dev/null 2>&1
echo "status $?"
"$phema" weights -q --json --sigma-rel 0.12 run >weights.json
"$phema" weights --weights weights.json run 2>&1 >/dev/null | grep -c '^warning: the snapshots'
echo "- F8, whose rounding is more than the newest at 32 times its norm"
header='{"w":{"dtype":"F8_E5M2","shape":[4096],"data_offsets":[0,4096]}}'
f8() { # time, exponent: elements of 2^(exponent - 15) to twice that
    {
        printf '%b' "\\x$(printf %02x ${#header})\\0\\0\\0\\0\\0\\0\\0"
        printf '%s' "$header"
        LC_ALL=C awk -v x="$1" -v e="$2" 'BEGIN {
            for (i = 0; i < 4096; i++) {
                x = x * 16807 % 2147483647
                printf "%c", 4 * e + int(x / 65536) % 4 + 128 * (int(x / 1048576) % 2)
            }
        }'
    } >"run/snapshot-000000$1-0.100.safetensors"
}
rm run/*.safetensors
for t in 1 2 3 4; do f8 $t 10; done
metric
f8 2 15
metric
