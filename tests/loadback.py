#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Outputs, opened with the safetensors library and computed again with numpy.

  tests/loadback.py PROGRAM      needs the packages safetensors and numpy

For each dtype: snapshots from gen, an average from synth; the library must load both, and the
weighted sum of the loaded snapshots, in float64 with the weights that the provenance says, must be
what was written, to one rounding of the dtype. Sums in float32, as float16 has them unless it is
said otherwise, may add what they are known to be off by, and round one number in a hundred
differently.
"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file


def check(program, work, dtype, precision):
    run, out = work / dtype, work / f"{dtype}-{precision}.safetensors"
    subprocess.run([program, "gen", "-q", "-f", "--count", "5", "--dtype", dtype, "--params", "30k", run],
                   check=True, stdout=subprocess.DEVNULL)
    subprocess.run([program, "synth", "-q", "--accumulate", precision, "--sigma-rel", "0.15", run, out],
                   check=True, stdout=subprocess.DEVNULL)
    is_float32 = dtype == "f16" and precision == "auto"
    made = load_file(out)
    with safe_open(out, "np") as file:
        metadata = file.metadata()
    provenance = json.loads(metadata["posthoc_ema.provenance"])
    sums = {name: np.zeros(tensor.shape) for name, tensor in made.items()}
    off = {name: np.zeros(tensor.shape) for name, tensor in made.items()}
    n_after = len(provenance["snapshots"])
    for snapshot in provenance["snapshots"]:
        tensors = load_file(run / snapshot["file"])
        assert tensors.keys() == made.keys(), snapshot["file"]
        for name, tensor in tensors.items():
            product = snapshot["weight"] * tensor.astype(np.float64)
            sums[name] += product
            off[name] += (n_after + 1) * np.abs(product) * 2.0**-24
        n_after -= 1
    n_different = 0
    for name, tensor in made.items():
        assert tensor.dtype == load_file(run / snapshot["file"])[name].dtype, name
        wanted = sums[name]
        # one rounding of the dtype, and those of numpy's sums, which have no fused multiply-add
        bound = np.spacing(np.abs(wanted).astype(tensor.dtype)).astype(np.float64) * 0.5
        bound = bound + 1e-14 * np.abs(wanted).max(initial=0)
        bound = bound + off[name] * is_float32
        assert np.all(np.abs(tensor.astype(np.float64) - wanted) <= bound), name
        n_different += np.sum(wanted.astype(tensor.dtype) != tensor)
    if is_float32:  # or else it was not
        assert 0 < n_different <= 0.01 * sum(tensor.size for tensor in made.values()), n_different
    assert abs(sum(s["weight"] for s in provenance["snapshots"]) - 1) < 1e-12
    assert provenance["command"].startswith("posthoc-ema synth --sigma-rel 0.15 --at 4096"), provenance["command"]
    print(f"{dtype}, sums {precision}: {len(made)} tensors, {len(provenance['snapshots'])} snapshots: as written")


def main():
    with tempfile.TemporaryDirectory() as work:
        for dtype in ("f16", "f32", "f64"):
            for precision in ("auto", "f64"):
                check(sys.argv[1], Path(work), dtype, precision)


main()
