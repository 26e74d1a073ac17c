# --keep-existing plans the rest of a training that has begun, from the motion that its snapshots show: what
# the old and the new ones give then is within a factor 2 of what was predicted.
times() { # the design of a training of 8192 steps that stores 0.05 and 0.10 in F32 at these times
    echo "{\"until\": 8192, \"dtype\": \"f32\", \"times\": [$1], \"averages\": [{\"sigma_rel\": 0.05}, {\"sigma_rel\": 0.1}]}"
}
old=256,512,768,1024,1280,1536,1792,2048
times $old >old.json
"$phema" gen -q --no-sync --design old.json --motion walk --params 20k --truth 0.08 run >/dev/null
"$phema" design -q --until 8192 --model 80k --disk 1500k --sigma-rel 0.08,0.15 --keep-existing run \
    --json >plan.json || exit
python3 - >new <<'END'
import json, os
plan = json.load(open("plan.json"))
chosen = plan["choices"][plan["chosen"]]
files = sorted(f for f in os.listdir("run") if f.endswith(".safetensors"))
kept, new = len(plan["keep"]), 2 * len(chosen["times"])
print(sorted(plan["keep"] + plan["delete"]) == files, min(chosen["times"]) > 2048, chosen["times"][-1] == 8192)
print(chosen["widths"] == [0.05, 0.1], chosen["dtype"], plan["motion"], (kept + new) * 80000 <= 1500000)
open("times", "w").write(",".join(str(t) for t in chosen["times"]))
open("delete", "w").write("\n".join(plan["delete"]) + "\n")
END
cat new
times "$old,$(cat times)" >all.json
"$phema" gen -q --no-sync --design all.json --motion walk --params 20k --truth 0.08,0.15 all >/dev/null
cmp run/snapshot-0002048-0.050.safetensors all/snapshot-0002048-0.050.safetensors
grep . delete | while read -r file; do rm "all/$file"; done
"$phema" synth -q --no-sync --sigma-rel 0.08,0.15 all out/ >/dev/null
for sigma in 0.080 0.150; do
    "$phema" diff --json out/phema-0008192-$sigma.safetensors all/truth/truth-0008192-$sigma.safetensors
done >diffs
python3 - <<'END'
import json, re
plan = json.load(open("plan.json"))
worst = plan["choices"][plan["chosen"]]["worst_error"]
true = max(float(x) for x in re.findall(r'"rel_l2": ?([0-9.e-]+),\s*"tensors"', open("diffs").read()))
print("true error as predicted:", 0.5 < true / worst < 2)
END
echo "- the motion of another training"
"$phema" design -q --until 100k --model 80k --disk 1500k --sigma-rel 0.05:0.2 --like run --json |
    grep -c '"motion": "seen"'
echo "- what cannot be"
"$phema" design -q --until 2000 --model 80k --disk 1M --sigma-rel 0.1 --keep-existing run 2>&1
"$phema" design -q --until 9000 --model 80k --disk 1M --sigma-rel 0.1 --keep-existing run --like run 2>&1
"$phema" design -q --until 9000 --model 80k --disk 100k --sigma-rel 0.1 --keep-existing run 2>&1
"$phema" design -q --until 9000 --model 80k --disk 1M --sigma-rel 0.1 --like nothing 2>&1
mkdir one && cp run/snapshot-0002048-0.050.safetensors one
"$phema" design -q --until 9000 --model 80k --disk 1M --sigma-rel 0.1 --like one 2>&1
