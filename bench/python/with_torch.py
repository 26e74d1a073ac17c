# SPDX-License-Identifier: Apache-2.0
"""A plain loop of safetensors and torch: with_torch.py SNAPSHOTS WEIGHTS _ OUT...

WEIGHTS is what `weights --json` prints; one target after another, sums in float32.
"""
import json
import os
import sys

from safetensors.torch import load_file

from model import save

folder, weights, _, *outs = sys.argv[1:]
with open(weights, encoding="utf-8") as file:
    plan = json.load(file)
for target, out in zip(plan["targets"], outs):
    sums = {}
    for snapshot, weight in zip(plan["snapshots"], target["weights"]):
        for name, tensor in load_file(os.path.join(folder, snapshot["file"])).items():
            if name in sums:
                sums[name] += weight * tensor.float()
            else:
                sums[name] = weight * tensor.float()
    save(sums, out)
