# Curves are mean densities over 1/720 of the training, per 1000 steps. The target must match differences
# of (t/T)^(gamma+1). The combination must match the weighted sum of the inputs, and the residual must match
# both. The inputs are drawn up to their ends.
"$phema" gen --quiet run
"$phema" plot --quiet profiles --sigma-rel 0.15 run -o profiles.csv
"$phema" weights --quiet --json --sigma-rel 0.15 run >weights.json
python3 - <<'END'
import csv, json
weights = json.load(open("weights.json"))
target = weights["targets"][0]
curves = {}
for line in csv.DictReader(open("profiles.csv")):
    curves.setdefault(line["series"], []).append((float(line["x"]), float(line["y"])))
T, step = 4096, 4096 / 720
F = lambda t, end, gamma: min(t / end, 1) ** (gamma + 1)
mean = lambda x, end, gamma: 1000 * (F(x + step / 2, end, gamma) - F(x - step / 2, end, gamma)) / step
def worst(curve, wanted):
    return max(abs(y - wanted(x)) for x, y in curves[curve]) < 1e-9
print(len(curves), len(curves["target"]), worst("target", lambda x: mean(x, T, target["gamma"])))
made = lambda x: sum(w * mean(x, s["time"], s["gamma"])
                     for s, w in zip(weights["snapshots"], target["weights"]))
print(worst("made", made))
rest = lambda x: 10 * (made(x) - mean(x, T, target["gamma"]))
print(worst("10 x (made - target)", rest))
inputs = [(s, curves.get(f"input sigma_rel {s['sigma_rel']:g} at {s['time']}")) for s in weights["snapshots"]]
print(all(c and c[-1][0] < s["time"] <= c[-1][0] + step and len(c) == -(-s["time"] * 720 // 4096)
          for s, c in inputs))
print(all(abs(y - mean(x, s["time"], s["gamma"])) < 1e-9 for s, c in inputs for x, y in c[:-1]))
END
