# SPDX-License-Identifier: Apache-2.0
"""See bench/recorder."""
import statistics
import sys
import tempfile
import time

import torch

from posthocema import gamma
from posthocema.torch import Recorder

WIDTHS = (0.05, 0.10)


def bare(averages, live, weights):
    for held, weight in zip(averages, weights):
        if hasattr(torch, "_foreach_lerp_"):
            torch._foreach_lerp_(held, live, weight)
        else:
            torch._foreach_add_(held, torch._foreach_sub(live, held), alpha=weight)


def measure(name, shapes, turns, directory):
    model = torch.nn.Module()
    for i, shape in enumerate(shapes):
        model.register_parameter(f"p{i}", torch.nn.Parameter(torch.randn(shape)))
    recorder = Recorder(model, WIDTHS, dir=directory)
    live = [p.detach() for p in model.parameters()]
    averages = [[p.clone() for p in live] for _ in WIDTHS]
    times = {"bare": [], "recorder": []}
    for turn in range(turns + 3):
        weights = [1 - (1 - 1 / (turn + 2)) ** (gamma(width) + 1) for width in WIDTHS]
        with torch.no_grad():
            start = time.process_time()
            bare(averages, live, weights)
            middle = time.process_time()
        recorder.step()
        end = time.process_time()
        if turn >= 3:
            times["bare"].append(middle - start)
            times["recorder"].append(end - middle)
    medians = {key: 1e3 * statistics.median(values) for key, values in times.items()}
    ratios = sorted(r / b for r, b in zip(times["recorder"], times["bare"]))
    low, high = ratios[len(ratios) // 4], ratios[3 * len(ratios) // 4]
    print(f"{name:34} {medians['bare']:9.3f} ms {medians['recorder']:9.3f} ms {statistics.median(ratios):6.2f}  {low:.2f} to {high:.2f}")


tiny = "--tiny" in sys.argv
torch.set_num_threads(1)
print(f"torch {torch.__version__}, {torch.get_num_threads()} thread, widths {WIDTHS}")
print(f"{'':34} {'bare':>12} {'recorder':>12} {'ratio':>6}  quartiles")
with tempfile.TemporaryDirectory() as directory:
    for name, shapes, turns in (
        ("16 tensors of 1M", [(1024, 1024)] * 16, 30),
        ("300 tensors of 16k", [(128, 128)] * 300, 100),
        ("2000 tensors of 64", [(64,)] * 2000, 100),
    ):
        measure(name, shapes[: 4 if tiny else None], 3 if tiny else turns, directory)
