# A simulated training stores what a design says, and in each motion averages of its snapshots are as near
# to the exact ones as was predicted before, within a factor 2.
for motion in walk white drift fall; do
    "$phema" design -q --until 2048 --model 80k --disk 700k --sigma-rel 0.05,0.08,0.12,0.2 --at 1024 \
        --motion $motion -o $motion.json >/dev/null
    "$phema" gen -q --no-sync --design $motion.json --motion $motion --params 20k \
        --truth 0.05,0.08,0.12,0.2 --truth-at 1024,2048 $motion >/dev/null
    "$phema" synth -q --no-sync --sigma-rel 0.05,0.08,0.12,0.2 --at 1024,2048 $motion $motion-out/ >/dev/null
    for truth in "$motion"/truth/*; do
        name=$(basename "$truth")
        "$phema" diff --json "$motion-out/phema-${name#truth-}" "$truth"
    done >$motion.diffs
    python3 - $motion <<'END'
import glob, json, re, sys
motion = sys.argv[1]
plan = json.load(open(motion + ".json"))
files = {f"{motion}/snapshot-{t:07d}-{w['sigma_rel']:.3f}.safetensors"
         for t in plan["times"] for w in plan["averages"]}
found = set(glob.glob(motion + "/*.safetensors"))
true = max(float(x) for x in re.findall(r'"rel_l2": ?([0-9.e-]+),\s*"tensors"', open(motion + ".diffs").read()))
print(motion, files == found, 0.5 < true / plan["worst_error"] < 2)
END
done
echo "- what a design says is not said twice"
"$phema" gen -q --design walk.json --count 3 again 2>&1
"$phema" gen -q --design nothing.json again 2>&1
echo '{"until": 100, "dtype": "f32", "times": [50, 20]}' >bad.json
"$phema" gen -q --design bad.json again 2>&1
echo '{"until": 100, "dtype": "f32", "times": [20, 50], "averages": []}' >bad.json
"$phema" gen -q --design bad.json again 2>&1
