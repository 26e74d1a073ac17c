# Raw snapshots have no density, so their weight is drawn over the stretch that contains them. A merge of the
# last two snapshots is made exactly.
"$phema" gen --quiet --raw --count 4 run
"$phema" plot --quiet profiles --input-profile raw --profile sma:2 --profile 'window:1000 - raw' \
    run -o profiles.csv
python3 - <<'END'
import csv
from collections import defaultdict
sums, most = defaultdict(float), defaultdict(float)
for line in csv.DictReader(open("profiles.csv")):
    key = line["panel"], line["series"]
    y = float(line["y"]) / 1000 * 4096 / 720
    if not key[1].startswith("input"):
        sums[key] += y
        most[key] = max(most[key], abs(y))
for key in sums:
    print(*key, f"{sums[key]:.3f} {most[key]:.3f}", sep=" | ")
END
