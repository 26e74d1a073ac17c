# A comb is drawn as the even density that stands in for it in comparisons. A snapshot updated every
# 10 steps has a falling curve without teeth (its exponent is really 0.79). The area of the curve is the
# weight that lies within the picture.
"$phema" gen --quiet --update-every 10 --count 4 run
"$phema" plot --quiet profiles --sigma-rel 0.2 run -o profiles.csv
python3 - <<'END'
import csv
curve = [float(l["y"]) for l in csv.DictReader(open("profiles.csv"))
         if l["series"] == "input sigma_rel 0.1 every 10 at 4096"]
print(len(curve), all(a >= b for a, b in zip(curve[4:-1], curve[5:])))
print(f"{sum(curve) / 1000 * 4096 / 720:.6f}")
END
