# The marked points are the errors that weights predicts for these targets; the curves pass through them.
# The profile error is drawn where it is minimised.
"$phema" gen --quiet run
cat >compare.py <<'END'
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
          "profile error" in drawn or
          same(drawn["paper's weights"][at], target["predicted_error"]["paper_weights"]),
          "profile error" not in drawn or
          same(drawn["profile error"][at], target["profile_error"]) and
          same(drawn["target profile error"][at], target["profile_error"]))
END
for metric in motion profile; do
    "$phema" plot -qf error --metric $metric --sigma-rel 0.07,0.153 --gamma 5 run -o error.csv
    "$phema" weights --quiet --json --metric $metric --sigma-rel 0.07,0.153 --gamma 5 run >weights.json
    python3 compare.py
done
