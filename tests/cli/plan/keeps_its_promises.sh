# synth does what plan forecasts. Bytes are equal; peak memory is at most the forecast, and little less.
# The threads of a run write in step, as on an idle machine: where one of them made most of the output, the buffers of
# the others would stay untouched. Sanitizers keep memory of their own, so only bytes are compared under them.
set -e
faults="env LD_PRELOAD=$(dirname "$phema")/tests/libfaults.so FAULT_CALLS=pwrite FAULT_PATH=.partial"
[ -z "${sanitize-}" ] || faults=
number() { grep -o "\"$1\": [0-9]*" "$2" | head -n 1 | sed 's/.*: //'; }
compare() { # name, threads, arguments of both
    local name=$1 threads=$2
    shift 2
    "$phema" plan -q --no-sync --json -j"$threads" "$@" >plan.json
    FAULT_STEP=$threads $faults "$phema" synth -q --no-sync --force --json -j"$threads" "$@" >synth.json
    awk -v name="$name" -v r0="$(number read_bytes plan.json)" -v r1="$(number read_bytes synth.json)" \
        -v w0="$(number write_bytes plan.json)" -v w1="$(number written_bytes synth.json)" \
        -v p="$(number peak_ram_bytes plan.json)" -v m="$(number peak_anonymous_bytes synth.json)" \
        -v sanitize="${sanitize-}" -v slack="${slack-2097152}" 'BEGIN {
        read = r0 == r1 ? "read" : "read " r0 " " r1
        written = w0 == w1 ? "written" : "written " w0 " " w1
        memory = sanitize != "" || (m <= p && p <= 1.05 * m + slack) ? "memory" : "memory " p " " m
        print name ": " read ", " written ", " memory }'
}
"$phema" gen -q --count 8 --steps 40 --params 4M --dtype f16 --no-sync run >/dev/null
"$phema" gen -q --count 3 --steps 40 --params 600k --tensors 300 --dtype f32 --no-sync small >/dev/null
"$phema" gen -q --count 1 --steps 40 --params 5M --dtype f32 --no-sync pair >/dev/null
mkdir packed
for file in pair/*.safetensors; do
    zstd -q "$file" -o "packed/$(basename "$file").zst"
done
compare "one target" 2 --sigma-rel 0.1 run out.safetensors
compare "threads" 7 --sigma-rel 0.1 run out.safetensors
compare "a sweep" 2 --sigma-rel 0.05:0.25:0.01 run sweep/
compare "two times" 2 --sigma-rel 0.05,0.1 --at 30,40 run times/
compare "float32" 2 --dtype f32 --sigma-rel 0.1 run out.safetensors
compare "small tensors" 2 --sigma-rel 0.1 small out.safetensors
compare "chosen tensors" 1 --include 'blocks\.0' --sigma-rel 0.1 small out.safetensors
compare "shards" 2 --shard-size 300k --sigma-rel 0.1 small shards
compare "rules" 2 --sigma-rel 0.05:0.25:0.01 --rule 'blocks\.0=copy' --rule '\.bias=0.05' small rules/
compare "rules for all" 2 --sigma-rel 0.05:0.25:0.01 --rule 'weight=0.07' --rule '.=0.2' run ruled/
compare "rules, compressed snapshots" 2 --sigma-rel 0.1 --rule 'weight=0.07' packed out.safetensors
compare "compressed snapshots" 2 --sigma-rel 0.07 packed out.safetensors
compare "tight" 2 --max-ram "$((6 + ${sanitize:+400}0))M" --sigma-rel 0.05:0.25:0.01 run tight/
direct=direct # where the directory's filesystem can
"$phema" synth -q --io direct --sigma-rel 0.1 small probe.safetensors >/dev/null 2>probe || direct="read"
compare "past the page cache" 2 --io $direct --sigma-rel 0.1 run out.safetensors
compare "a sweep past the page cache" 2 --io $direct --sigma-rel 0.05:0.25:0.01 run sweep/
# There are fewer reads than buffers.
slack=16777216 compare "small tensors past the page cache" 1 --io $direct --sigma-rel 0.1 small out.safetensors
compare "four reads in flight" 2 --io $direct --io-depth 4 --sigma-rel 0.1 run out.safetensors
compare "tight past the page cache" 1 --io $direct --max-ram "$((6 + ${sanitize:+400}0))M" --sigma-rel 0.05,0.1 run out/
compare "EDM2" 1 --sigma-rel 0.1 "$fixtures/edm2/snapshots" out.pkl
