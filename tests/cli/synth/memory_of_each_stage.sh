# --profile-memory writes a JSON line for each stage; the program warns of a planted leak. Sanitizers bring
# a malloc of their own, which does not report how much it allocated.
set -e
"$phema" gen -q --count 2 --steps 30 --params 20M --dtype f16 --no-sync run >/dev/null
"$phema" synth -q --no-sync --sigma-rel 0.1 --profile-memory memory.jsonl run out.safetensors >/dev/null
python3 - <<'PY'
import json
for line in open("memory.jsonl"):
    stage = json.loads(line)
    assert stage["elapsed_seconds"] >= 0
    for kind in ("rss_anon", "rss_file", "allocated"):
        level = stage[kind]
        assert level["peak"] >= max(level["baseline"], level["now"])
        assert level["delta"] == level["now"] - level["baseline"]
        assert level["peak_delta"] == level["peak"] - level["baseline"]
    print(stage["stage"], "leaked", stage["leaked"])
PY
if "$phema" synth -q --no-sync --force --sigma-rel 0.1 --profile-memory memory.jsonl run out.safetensors; then
    echo "replaced with --force"
fi
status=0
"$phema" synth -q --no-sync --sigma-rel 0.1 --profile-memory memory.jsonl run other.safetensors || status=$?
echo "status $status"
if [ -n "${sanitize-}" ]; then
    echo "leak told"
    exit
fi
LD_PRELOAD=$leak "$phema" synth -j2 --no-sync --force --sigma-rel 0.1 --max-ram 3M --profile-memory memory.jsonl \
    run out.safetensors 2>&1 >/dev/null | grep -q "warning: memory grew all through 'accumulate'" && echo "leak told"
grep accumulate memory.jsonl | grep -q '"leaked":[1-9]' || cat memory.jsonl
