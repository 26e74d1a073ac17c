#!/usr/bin/env bash
# torch's two functions for the same EMA differ: with get_ema_avg_fn(0.9999) an average of float32 is 1.7e-4 too small.
#
# get_ema_avg_fn computes decay * average + (1 - decay) * parameters. In float32 decay and 1 - decay are rounded apart, so that
# they do not add up to 1. The average settles at f32(1 - decay) / (1 - f32(decay)) times what it should be: 1.4e-3 less for
# 0.99999. get_ema_multi_avg_fn takes lerp, which has no such factor. Parameters that stand still do not show it: each
# change of their average is then too small for float32. Lightning's EMAWeightAveraging and timm's ModelEmaV2 have the first form.
# Seen with torch 2.15.0 (5 GB with what it needs).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -q torch==2.15.0 numpy==2.2.6
venv/bin/python - <<'END' 2>/dev/null | tee found
import numpy, torch
from torch.optim import swa_utils

DECAY, LAST = 0.9999, 40_000
torch.manual_seed(0)
model = torch.nn.Linear(1000, 1, bias=False)
averages = {name: swa_utils.AveragedModel(model, **{name: getattr(swa_utils, f"get_ema_{name}")(DECAY)}) for name in ("avg_fn", "multi_avg_fn")}
exact = None
for _ in range(LAST):
    torch.nn.init.uniform_(model.weight, 1, 2)
    for average in averages.values():
        average.update_parameters(model)
    with torch.no_grad():
        new = model.weight.double()
        exact = new if exact is None else exact + (1 - DECAY) * (new - exact)
for name, average in averages.items():
    scale = (average.module.weight.detach().double() / exact).mean().item()
    print(f"{name}: {scale - 1:+.4f}")
print(f"f32(1 - decay) / (1 - f32(decay)): {float(numpy.float32(1 - DECAY)) / (1 - float(numpy.float32(DECAY))) - 1:+.2e}")
END
diff found - <<'END'
avg_fn: -0.0002
multi_avg_fn: +0.0000
f32(1 - decay) / (1 - f32(decay)): -1.66e-04
END
