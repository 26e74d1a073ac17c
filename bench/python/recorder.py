# SPDX-License-Identifier: Apache-2.0
"""See bench/recorder."""
import os
import pathlib
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


KINDS = {"compensated": {}, "float64": {"average_dtype": torch.float64}, "float32": {"compensate": False}}


def measure_cost(name, shapes, turns, directory):
    model = torch.nn.Module()
    for i, shape in enumerate(shapes):
        model.register_parameter(f"p{i}", torch.nn.Parameter(torch.randn(shape)))
    recorders = {kind: Recorder(model, WIDTHS, dir=directory, every=0, **options) for kind, options in KINDS.items()}
    live = [p.detach() for p in model.parameters()]
    averages = [[p.clone() for p in live] for _ in WIDTHS]
    times = {kind: [] for kind in ("bare", *KINDS)}
    for turn in range(turns + 3):
        weights = [1 - (1 - 1 / (turn + 2)) ** (gamma(width) + 1) for width in WIDTHS]
        start = time.process_time()
        with torch.no_grad():
            bare(averages, live, weights)
        for kind in ("bare", *KINDS):
            if kind != "bare":
                start = time.process_time()
                recorders[kind].step()
            if turn >= 3:
                times[kind].append(time.process_time() - start)
            start = time.process_time()
    line = f"{name:22} {1e3 * statistics.median(times['bare']):8.3f} ms"
    for kind in KINDS:
        ratios = sorted(r / b for r, b in zip(times[kind], times["bare"]))
        low, high = ratios[len(ratios) // 4], ratios[3 * len(ratios) // 4]
        line += f"  {statistics.median(ratios):5.2f} ({low:.2f} to {high:.2f})"
    print(line)


def error_of(recorder, truth, first):
    """Of the norm of the parameters, and of all that the average has moved."""
    average = recorder.average(dtype=torch.float64)["w"]
    off = float((average - truth).norm())
    return f"{off / float(truth.norm()):9.1e} {off / float((truth - first).norm()):9.1e}"


def measure_accuracy(most, directory):
    """Parameters that move by a thousandth of their size, against averages in float64 of the same steps."""
    torch.manual_seed(1)
    first, walk = torch.randn(256), torch.zeros(256)
    model = torch.nn.Module()
    model.w = torch.nn.Parameter(first.clone())
    exponent = gamma(WIDTHS[1]) + 1
    rhythms = (1, 8, 64)
    recorders = {
        (rhythm, kind): Recorder(model, WIDTHS[1:], dir=directory, every=0, update_every=rhythm, **KINDS[kind])
        for rhythm in rhythms
        for kind in ("compensated", "float32")
    }
    truth = {rhythm: torch.zeros(256, dtype=torch.float64) for rhythm in rhythms}
    for step in range(1, most + 1):
        with torch.no_grad():
            walk.mul_(0.999).add_(torch.randn(256), alpha=4.47e-5)
            model.w.copy_(first * (1 + walk))
            live = model.w.double()
            for rhythm, average in truth.items():
                if step % rhythm == 0:
                    average.lerp_(live, 1 - (1 - rhythm / step) ** exponent)
        for recorder in recorders.values():
            recorder.step()
        if step % 1024 == 0 and step // 1024 in (1, 10, 100, 1000):
            for rhythm in rhythms:
                errors = [error_of(recorders[rhythm, kind], truth[rhythm], first) for kind in ("compensated", "float32")]
                print(f"{step:8} {rhythm:12} {errors[0]:>24} {errors[1]:>24}")


def timed(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def measure_saving(n_millions, dtype, directory):
    """One width, three snapshots: seconds in which the training waits, and those of the thread that writes."""
    model = torch.nn.Module()
    for i in range(max(n_millions // 5, 1)):
        model.register_parameter(f"p{i}", torch.nn.Parameter(torch.randn(5 if n_millions >= 5 else 1, 1000, 1000)))
    seconds = {False: [], True: []}
    writing = []
    for background, waits in seconds.items():
        recorder = Recorder(model, WIDTHS[1:], dir=directory, every=0, dtype=dtype, background=background, replace=True)
        for _ in range(3):
            recorder.step()
            waits.append(timed(recorder.save))
            writing.append(timed(recorder.wait))
        for path in recorder.save():
            size = os.path.getsize(path)
        recorder.close()
        del recorder
    first, later = seconds[True][0], statistics.median(seconds[True][1:])
    times = f"{statistics.median(seconds[False]):8.2f} {first:12.2f} {later:10.2f} {statistics.median(writing[3:]):10.2f}"
    print(f"{n_millions:6} M {dtype:>6} {size / 2**20:8.0f} MiB {times}")
    for path in pathlib.Path(directory).glob("snapshot-*"):
        path.unlink()


tiny = "--tiny" in sys.argv
torch.set_num_threads(1)
print(f"torch {torch.__version__}, {torch.get_num_threads()} thread, widths {WIDTHS}")
print(f"{'a step':22} {'bare':>11}" + "".join(f"  {kind:>20}" for kind in KINDS))
with tempfile.TemporaryDirectory() as directory:
    for name, shapes, turns in () if "--saving" in sys.argv else (
        ("16 tensors of 1M", [(1024, 1024)] * 16, 30),
        ("300 tensors of 16k", [(128, 128)] * 300, 100),
        ("2000 tensors of 64", [(64,)] * 2000, 100),
    ):
        measure_cost(name, shapes[: 4 if tiny else None], 3 if tiny else turns, directory)
    print(f"\nseconds of a save{'waits':>21} {'beside: first':>14} {'later':>9} {'written':>10}")
    for n_millions in (1,) if tiny else (10, 50, 100, 200, 500):
        for dtype in ("f32", "f16"):
            measure_saving(n_millions, dtype, directory)
    if "--saving" in sys.argv:
        sys.exit()
    print(f"\nerror of norm, of movement{'compensated':>20} {'float32':>24}\n    step update_every")
    measure_accuracy(1024 if tiny else 1_024_000, directory)
