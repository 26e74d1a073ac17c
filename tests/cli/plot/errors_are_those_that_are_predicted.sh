# The marked points are the errors that weights predicts for these targets; the curves pass through them.
"$phema" gen --quiet run
"$phema" plot --quiet error --sigma-rel 0.07,0.153 --gamma 5 run -o error.csv
"$phema" weights --quiet --json --sigma-rel 0.07,0.153 --gamma 5 run >weights.json
python3 - <<'END'
import csv, json
drawn = {}
for line in csv.DictReader(open("error.csv")):
    drawn.setdefault(line["series"], {})[float(line["x"])] = float(line["y"])
for name, points in drawn.items():
    print(name, len(points), f"{min(points):.4g} to {max(points):.4g}")
same = lambda a, b: abs(a - b) <= 1e-9 * b
for target in json.load(open("weights.json"))["targets"]:
    at = target["sigma_rel"]
    print(f"{at:.4f}", same(drawn["predicted error"][at], target["predicted_error"]["total"]),
          same(drawn["target predicted error"][at], target["predicted_error"]["total"]),
          same(drawn["rounding"][at], target["predicted_error"]["rounding"]),
          same(drawn["profile error"][at], target["profile_error"]),
          same(drawn["target profile error"][at], target["profile_error"]))
END
