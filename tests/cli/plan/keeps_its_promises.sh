# synth does what plan forecasts. Bytes are equal; peak memory is at most the forecast, and little less.
# A run needs less where some of its threads are done before others begin, as on a busy machine: then it is made again,
# and the largest peak counts. No run may exceed the forecast. Sanitizers keep memory of their own, so only bytes are
# compared under them.
set -e
number() { grep -o "\"$1\": [0-9]*" "$2" | head -n 1 | sed 's/.*: //'; }
is_near() { awk -v p="$1" -v m="$2" -v slack="${slack-2097152}" 'BEGIN { exit !(p <= 1.05 * m + slack) }'; }
compare() { # name, arguments of both
    local name=$1
    shift
    "$phema" plan -q --no-sync --json "$@" >plan.json
    local planned measured=0 peak
    planned=$(number peak_ram_bytes plan.json)
    for _ in 1 2 3 4 5 6 7 8; do
        "$phema" synth -q --no-sync --force --json "$@" >synth.json
        peak=$(number peak_anonymous_bytes synth.json)
        [ "$peak" -gt "$measured" ] && measured=$peak
        [ -n "${sanitize-}" ] && planned=0 measured=0
        is_near "$planned" "$measured" && break
    done
    awk -v name="$name" -v r0="$(number read_bytes plan.json)" -v r1="$(number read_bytes synth.json)" \
        -v w0="$(number write_bytes plan.json)" -v w1="$(number written_bytes synth.json)" \
        -v p="$planned" -v m="$measured" -v near="$(is_near "$planned" "$measured" && echo 1)" 'BEGIN {
        read = r0 == r1 ? "read" : "read " r0 " " r1
        written = w0 == w1 ? "written" : "written " w0 " " w1
        memory = m <= p && near ? "memory" : "memory " p " " m
        print name ": " read ", " written ", " memory }'
}
"$phema" gen -q --count 8 --steps 40 --params 4M --dtype f16 --no-sync run >/dev/null
"$phema" gen -q --count 3 --steps 40 --params 600k --tensors 300 --dtype f32 --no-sync small >/dev/null
"$phema" gen -q --count 1 --steps 40 --params 5M --dtype f32 --no-sync pair >/dev/null
mkdir packed
for file in pair/*.safetensors; do
    zstd -q "$file" -o "packed/$(basename "$file").zst"
done
compare "one target" --sigma-rel 0.1 run out.safetensors
compare "threads" -j7 --sigma-rel 0.1 run out.safetensors
compare "a sweep" --sigma-rel 0.05:0.25:0.01 run sweep/
compare "two times" --sigma-rel 0.05,0.1 --at 30,40 run times/
compare "float32" --dtype f32 --sigma-rel 0.1 run out.safetensors
compare "small tensors" --sigma-rel 0.1 small out.safetensors
compare "chosen tensors" --include 'blocks\.0' --sigma-rel 0.1 small out.safetensors
compare "shards" --shard-size 300k --sigma-rel 0.1 small shards
compare "rules" --sigma-rel 0.05:0.25:0.01 --rule 'blocks\.0=copy' --rule '\.bias=0.05' small rules/
compare "rules for all" --sigma-rel 0.05:0.25:0.01 --rule 'weight=0.07' --rule '.=0.2' run ruled/
compare "rules, compressed snapshots" -j2 --sigma-rel 0.1 --rule 'weight=0.07' packed out.safetensors
compare "compressed snapshots" -j2 --sigma-rel 0.07 packed out.safetensors
compare "tight" --max-ram "$((6 + ${sanitize:+400}0))M" --sigma-rel 0.05:0.25:0.01 run tight/
direct=direct # where the directory's filesystem can
"$phema" synth -q --io direct --sigma-rel 0.1 small probe.safetensors >/dev/null 2>probe || direct="read"
compare "past the page cache" -j2 --io $direct --sigma-rel 0.1 run out.safetensors
compare "a sweep past the page cache" -j2 --io $direct --sigma-rel 0.05:0.25:0.01 run sweep/
# There are fewer reads than buffers; on a busy machine one thread makes them all.
slack=16777216 compare "small tensors past the page cache" --io $direct --sigma-rel 0.1 small out.safetensors
compare "four reads in flight" -j2 --io $direct --io-depth 4 --sigma-rel 0.1 run out.safetensors
compare "tight past the page cache" -j1 --io $direct --max-ram "$((6 + ${sanitize:+400}0))M" --sigma-rel 0.05,0.1 run out/
compare "EDM2" --sigma-rel 0.1 "$fixtures/edm2/snapshots" out.pkl
