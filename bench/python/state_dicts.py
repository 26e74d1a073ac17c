# SPDX-License-Identifier: Apache-2.0
"""Averages in memory, beside files on tmpfs and a loop of torch: state_dicts.py SNAPSHOTS OUT N_RUNS N_TARGETS...

Prints the seconds of each in turn as JSON, all in one process, and the peak of memory beyond the results.
"""
import ctypes
import json
import os
import shutil
import sys
import time

import torch
from safetensors.torch import load_file

import posthocema

folder, out, n_runs, *counts = sys.argv[1:]
WIDTHS = [0.06 + 0.18 * m / 7 for m in range(8)]


def loop(plan):
    averages = []
    for target in plan:
        sums = {}
        for snapshot, weight in zip(plan.snapshots, target.weights):
            for name, tensor in load_file(os.path.join(folder, snapshot.file)).items():
                if name in sums:
                    sums[name] += weight * tensor.float()
                else:
                    sums[name] = weight * tensor.float()
        averages.append(sums)
    return averages


def status(name):
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name))


def beyond_results(plan):
    """Peak of memory while averages are made, without what was there before and their own tensors."""
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")  # resets VmHWM
    before = status("VmRSS")
    made = plan.state_dicts(kind="torch")
    size = sum(tensor.numel() * tensor.element_size() for state in made for tensor in state.values())
    return status("VmHWM") - before - size


torch.set_num_threads(len(os.sched_getaffinity(0)))
results = {}
for count in map(int, counts):
    with posthocema.open(folder) as series, series.plan(WIDTHS[:count]) as plan:
        kinds = [("run", lambda: plan.run(out + "/{sigma}.safetensors", sync=False, replace=True)),
                 ("state_dicts", lambda: plan.state_dicts(kind="torch")), ("loop", lambda: loop(plan))]
        results[count] = {kind: [] for kind, _ in kinds}
        results[count]["beyond"] = beyond_results(plan)
        for turn in range(int(n_runs)):
            for i in range(len(kinds)):
                kind, make = kinds[(turn + i) % len(kinds)]
                start = time.monotonic()
                made = make()
                results[count][kind].append(time.monotonic() - start)
                del made
                shutil.rmtree(out, ignore_errors=True)
                os.makedirs(out)
print(json.dumps(results))
