# Small outputs have 8 runs: of 3 processes one makes 3 of them, of 16 eight make one. Outputs with new scales are
# made whole, by one process each.
"$phema" gen --quiet --count 4 --dtype f16 --params 100k --no-sync run >/dev/null
plan() {
    "$phema" plan --quiet --json --sigma-rel 0.05,0.1,0.2 "$@" >plan.json
    python3 - <<'END'
import json
plan = json.load(open("plan.json"))
each = plan.get("shared")
if each is None:
    print("not asked for")
else:
    part = -(-each["runs"] // each["processes"]) / each["runs"]
    for name in "read_bytes", "write_bytes":
        assert abs(each[name] - part * plan[name]) < 2, name
    assert each["peak_ram_bytes"] == plan["peak_ram_bytes"] and 0 < each["seconds"] <= plan["seconds"]
    print(each["processes"], "processes,", each["runs"], "runs,", each["opens"], "opens")
END
}
plan run
plan --processes 1 run
plan --processes 3 run
plan --processes 16 run
plan --processes 16 run '{sigma}.safetensors.zst'
plan --processes 16 --dtype same "$fixtures/scaled/channel" '{sigma}.safetensors'
plan --processes 16 --into run/snapshot-0004096-0.050.safetensors run '{sigma}.safetensors'
"$phema" plan --quiet --sigma-rel 0.1 --processes 3 run | tr '\n' ' ' | grep -o 'shared *by 3 processes in 8 runs: each reads'
"$phema" plan --processes 0 --sigma-rel 0.1 run
