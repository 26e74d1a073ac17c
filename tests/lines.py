#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lines through averages and through snapshots, computed again with numpy.

  tests/lines.py PROGRAM      needs numpy

Raw snapshots from gen; the outputs of `line` must be A + lambda (B - A), those of `extrapolate` numpy's least squares of
each element against time, to one rounding of the dtype. So must the R^2 be, and the error that is expected of the scatter.
"""
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np


def load(path):
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    parts = [np.frombuffer(data, "<f4", (end - first) // 4, 8 + size + first)
             for name, entry in sorted(header.items()) if name != "__metadata__"
             for first, end in [entry["data_offsets"]]]
    return np.concatenate(parts).astype(np.float64)


def mean(rows, weights):
    return np.average(rows[-len(weights):], axis=0, weights=weights)


def check_scatter(program, run, times, rows, far):
    """Of so few elements the sample has all."""
    said = subprocess.run([program, "weights", "-q", "--json", "--name-regex", "snapshot-(?<time>[0-9]+)-raw",
                           "--input-profile", "raw", "--profile", f"extrapolate:to={far:g}", run],
                          check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    target = json.loads(said)["targets"][0]
    x = times - times.mean()
    residuals = rows - np.outer(x, np.polyfit(x, rows, 1)[0]) - rows.mean(axis=0)
    r_squared = 1 - (residuals**2).sum() / ((rows - rows.mean(axis=0))**2).sum()
    noise = (residuals**2).sum() / (len(times) - 2) / (rows[-1]**2).sum()
    weights = np.array(target["weights"])[-len(times):]
    assert abs(target["r_squared"] - r_squared) < 1e-12, target["r_squared"]
    assert abs(target["predicted_error"]["scatter"] / np.sqrt(noise * (weights**2).sum()) - 1) < 1e-9
    assert target["predicted_error"]["total"] >= target["predicted_error"]["scatter"]
    print(f"R^2 {r_squared:.3f}, as numpy has it")


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as work:
        run, out = Path(work, "run"), Path(work, "out")
        subprocess.run([program, "gen", "-q", "--raw", "--count", "9", "--params", "1500", run], check=True, stdout=subprocess.DEVNULL)
        files = sorted(run.glob("snapshot-*-raw.safetensors"))
        times = np.array([float(re.search(r"-([0-9]+)-raw", file.name)[1]) for file in files])
        rows = np.array([load(file) for file in files])
        sma, wma, raw = mean(rows, [1] * 4), mean(rows, [1, 2, 3]), rows[-1]
        far = times[-1] * 2
        nearer = raw + 0.5 * (sma - raw)
        wanted = {
            "line:sma:4,raw,1.5": sma + 1.5 * (raw - sma),
            "line:sma:4,wma:3,-1": sma - (wma - sma),
            "line:raw,line:raw,sma:4,0.5,3": raw + 3 * (nearer - raw),
            "line:sma:4,raw,2 - wma:3": sma + 2 * (raw - sma) - wma,
            f"extrapolate:to={far:g}": np.polyval(np.polyfit(times - far, rows, 1), 0),
            f"extrapolate:to={far:g},window={times[-1] - times[-4]:g}":
                np.polyval(np.polyfit(times[-4:] - far, rows[-4:], 1), 0),
        }
        targets = [word for spec in wanted for word in ("--profile", spec)]
        made = subprocess.run([program, "synth", "-q", "--no-sync", "--name-regex", "snapshot-(?<time>[0-9]+)-raw",
                               "--input-profile", "raw", *targets, run, f"{out}/"],
                              check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.split()
        assert len(made) == len(wanted), made
        check_scatter(program, run, times, rows, far)
        for (spec, truth), path in zip(wanted.items(), made):
            bound = 0.5 * np.spacing(np.abs(truth).astype(np.float32)).astype(np.float64)
            bound += 1e-13 * np.abs(rows).max()
            assert np.all(np.abs(load(Path(path)) - truth) <= bound), spec
            print(f"{spec}: {truth.size} elements, as numpy has them")


main()
