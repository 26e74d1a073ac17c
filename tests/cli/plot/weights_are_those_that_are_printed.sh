# The drawn numbers are those of weights --json: one stem for each snapshot, and no other stems.
"$phema" gen --quiet run
"$phema" plot --quiet weights --sigma-rel 0.07,0.15 run -o weights.svg --csv weights.csv
"$phema" weights --quiet --json --sigma-rel 0.07,0.15 run >weights.json
python3 - <<'END'
import csv, json
weights = json.load(open("weights.json"))
drawn = list(csv.DictReader(open("weights.csv")))
wanted = [(f"sigma_rel {t['sigma_rel']:g} at {t['time']:g} steps", f"sigma_rel {s['sigma_rel']:g}",
           s["time"], w) for t in weights["targets"] for s, w in zip(weights["snapshots"], t["weights"])]
found = [(d["panel"], d["series"], float(d["x"]), float(d["y"])) for d in drawn]
print(len(found), sorted(found) == sorted(wanted))
END
