# A device factors in float64, and refinement in quad gives the weights of the quad solver.
mkdir bin
cp "$phema" bin/posthoc-ema
cp "$sim" bin/posthoc-ema-cuda.so
"$phema" gen --quiet --count 24 --steps 100k --params 20k run >/dev/null
for metric in walk profile motion; do
    for solver in quad cusolver; do
        bin/posthoc-ema weights --quiet --json --metric $metric --solver $solver --sigma-rel 0.07,0.15 run >$solver.json
    done
    grep -o '"solver": "[a-z]*"' cusolver.json | sort -u
    python3 - <<'PYTHON'
import json
quad, other = (json.load(open(f"{name}.json"))["targets"] for name in ("quad", "cusolver"))
for a, b in zip(quad, other):
    size = max(abs(x) for x in a["weights"])
    worst = max(abs(x - y) for x, y in zip(a["weights"], b["weights"])) / size
    print("same to 15 digits" if worst < 1e-15 else f"off by {worst}")
PYTHON
done
