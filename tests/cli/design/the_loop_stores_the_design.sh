# The loop that is printed is run: with torch and safetensors where Python has them, else with a few
# lines that do the same arithmetic in float32. Its snapshots are those of the design, and averages of
# them are as near to the exact ones as the design says.
"$phema" design -q --until 400 --model 512 --disk 24k --sigma-rel 0.06:0.2 --motion walk -o plan.json \
    >text || exit
sed '1,/^$/d' text >loop.py
[ "$(wc -l <loop.py)" -le 15 ] && echo "at most 15 lines"
# 64 times are listed; four decimals would not be this width
"$phema" design -q --until 1M --model 2.6G --dtype f32 --input-sigma 0.05,0.123456 --sigma-rel 0.05:0.2 \
    --disk 333G | sed '1,/^$/d' >listed.py
echo "$(wc -l <listed.py) lines for $(sed -n '/^times/,/}/p' listed.py | grep -o '[0-9]*[,}]' | grep -c '[0-9]') times"
grep -o "'snapshot.*" listed.py
grep '^#' loop.py
"$phema" design -q --until 100k --model 1G --disk 60G --sigma-rel 0.05:0.15 | sed '1,/^$/d' >long.py # no file of times
awk 'length > 100 { print "too long: " $0 } /^    [0-9]/ { n++ } END { print (n > 0 ? "times take several lines" : "one line") }' long.py
python3 - <<'END'
source = open("long.py").read()
times = eval(source[source.index("{"):source.index("}") + 1])
print("all times:", len(times) > 8, max(times) == 100000)
END
cat >train.py <<'END'
import json, random, struct, sys, types
def rounded(values, kind):
    return [struct.unpack("<" + kind, struct.pack("<" + kind, v))[0] for v in values]

try:
    import torch
except ImportError:
    class Tensor:
        def __init__(self, values, kind="f"):
            self.values, self.kind = rounded(values, kind), kind
        def detach(self):
            return self
        def float(self):
            return Tensor(self.values)
        def clone(self):
            return Tensor(self.values, self.kind)
        def lerp_(self, end, weight):
            self.values = rounded([a + weight * (b - a) for a, b in zip(self.values, end.values)], "f")
        def half(self):
            return Tensor(self.values, "e")
        def contiguous(self):
            return self
        def tolist(self):
            return self.values

    torch = types.ModuleType("torch")
    torch.tensor = Tensor
    sys.modules["torch"] = torch

def save_file(tensors, path):
    header, data = {}, b""
    for name, t in tensors.items():
        kind = getattr(t, "kind", "e" if str(getattr(t, "dtype", "")) == "torch.float16" else "f")
        raw = struct.pack(f"<{len(t.tolist())}{kind}", *t.tolist())
        header[name] = {"dtype": {"f": "F32", "e": "F16"}[kind], "shape": [len(t.tolist())],
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)

try:
    import safetensors.torch
except ImportError:
    package, module = types.ModuleType("safetensors"), types.ModuleType("safetensors.torch")
    module.save_file = save_file
    sys.modules.update({"safetensors": package, "safetensors.torch": module})

class Model:
    def __init__(self):
        self.weights = [random.gauss(0, 1) for _ in range(128)]
    def named_parameters(self):
        return [("w", torch.tensor(self.weights))]

random.seed(1)
model = Model()
exec(open("loop.py").read())
truth = list(model.weights)
for step in range(1, 401):
    # EMA 0.05 and 0.10 are 3 % apart: a variance of 0.075 over the training
    model.weights = [w + random.gauss(0, (0.075 / 400) ** 0.5) for w in model.weights]
    record(step)
    beta = (1 - 1 / step) ** (6.9372039376018075 + 1) # of sigma_rel 0.1
    truth = [beta * e + (1 - beta) * w for e, w in zip(truth, model.weights)]
sys.modules["safetensors.torch"].save_file({"w": torch.tensor(truth)}, "truth.safetensors")
END
python=python3 # the system's Python may be the one that has torch
/usr/bin/python3 -c "import torch" 2>/dev/null && python=/usr/bin/python3
mkdir run && cp plan.json run && (cd run && $python -c "exec(open('../train.py').read().replace('loop.py', '../loop.py'))") || exit
mv run/truth.safetensors run/plan.json .
python3 - <<'END'
import json, glob
plan = json.load(open("plan.json"))
wanted = sorted(f"run/snapshot-{t:07d}-{w:.4f}.safetensors" for t in plan["times"] for w in plan["widths"])
print("files:", wanted == sorted(glob.glob("run/*")))
END
"$phema" synth -q --no-sync --sigma-rel 0.1 run out.safetensors
"$phema" diff --json out.safetensors truth.safetensors >diff.json
python3 - <<'END'
import json
worst, true = json.load(open("plan.json"))["worst_error"], json.load(open("diff.json"))["rel_l2"]
print("error within the worst of the plan:", true < 2 * worst, worst < 1e-3)
END
