# SPDX-License-Identifier: Apache-2.0
"""See bench/recorder."""
import gc
import os
import pathlib
import statistics
import sys
import tempfile
import time

import torch

from posthocema import gamma
from posthocema.torch import Recorder

try:
    from ema_pytorch import PostHocEMA
except ImportError:
    PostHocEMA = None

WIDTHS = (0.05, 0.10)


def bare(averages, live, weights):
    for held, weight in zip(averages, weights):
        if hasattr(torch, "_foreach_lerp_"):
            torch._foreach_lerp_(held, live, weight)
        else:
            torch._foreach_add_(held, torch._foreach_sub(live, held), alpha=weight)


KINDS = {"compensated": {}, "float64": {"average_dtype": torch.float64}, "float32": {"compensate": False}}
STEPPED = (*(["ema-pytorch"] if PostHocEMA else []), *KINDS)


def make_model(shapes):
    model = torch.nn.Module()
    for i, shape in enumerate(shapes):
        model.register_parameter(f"p{i}", torch.nn.Parameter(torch.randn(shape)))
    return model


def make_step(kind, model, directory):
    if kind == "ema-pytorch":
        every = {"update_every": 1, "checkpoint_every_num_steps": "manual"}
        return PostHocEMA(model, sigma_rels=WIDTHS, checkpoint_folder=directory, **every).update
    return Recorder(model, WIDTHS, dir=directory, every=0, **KINDS[kind]).step


def process_seconds(call, *arguments):
    start = time.process_time()
    call(*arguments)
    return time.process_time() - start


def measure_cost(name, shapes, turns, directory):
    """Each kind in turn with the arithmetic alone; one kind at a time is in memory."""
    model = make_model(shapes)
    live = [p.detach() for p in model.parameters()]
    bares, columns = [], []
    for kind in STEPPED:
        step = make_step(kind, model, directory)
        averages = [[p.clone() for p in live] for _ in WIDTHS]
        ratios = []
        for turn in range(turns + 3):
            weights = [1 - (1 - 1 / (turn + 2)) ** (gamma(width) + 1) for width in WIDTHS]
            with torch.no_grad():
                seconds = process_seconds(bare, averages, live, weights)
            ratio = process_seconds(step) / seconds
            if turn >= 3:
                bares.append(seconds)
                ratios.append(ratio)
        ratios.sort()
        low, high = ratios[len(ratios) // 4], ratios[3 * len(ratios) // 4]
        columns.append(f"  {statistics.median(ratios):5.2f} ({low:.2f} to {high:.2f})")
        del step, averages
        gc.collect()
    print(f"{name:22} {1e3 * statistics.median(bares):8.3f} ms" + "".join(columns))


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


def shapes_of(n_millions):
    return [(5 if n_millions >= 5 else 1, 1000, 1000)] * max(n_millions // 5, 1)


def time_checkpoint(model, dtype, directory):
    """ema-pytorch keeps two widths at least: the time of one of them. Its files are not synced."""
    if not PostHocEMA:
        return "-"
    every = {"update_every": 1, "checkpoint_every_num_steps": "manual"}
    dtype = {"f32": torch.float32, "f16": torch.float16}[dtype]
    averages = PostHocEMA(model, sigma_rels=WIDTHS, checkpoint_folder=directory, checkpoint_dtype=dtype, **every)
    seconds = []
    for _ in range(3):
        averages.update()
        seconds.append(timed(averages.checkpoint) / len(WIDTHS))
        for path in pathlib.Path(directory).glob("*.pt"):
            path.unlink()
    return f"{statistics.median(seconds):.2f}"


def measure_saving(n_millions, dtype, directory):
    """One width, three snapshots: seconds in which the training waits, and those of the thread that writes."""
    model = make_model(shapes_of(n_millions))
    seconds = {False: [], True: []}
    writing = []
    theirs = time_checkpoint(model, dtype, directory)
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
    times = f"{theirs:>11} {statistics.median(seconds[False]):8.2f} {first:12.2f} {later:10.2f} {statistics.median(writing[3:]):10.2f}"
    print(f"{n_millions:6} M {dtype:>6} {size / 2**20:8.0f} MiB {times}")
    for path in pathlib.Path(directory).glob("snapshot-*"):
        path.unlink()


tiny = "--tiny" in sys.argv
torch.set_num_threads(1)
print(f"torch {torch.__version__}, {torch.get_num_threads()} thread, widths {WIDTHS}")
print(f"{'a step':22} {'bare':>11}" + "".join(f"  {kind:>20}" for kind in STEPPED))
with tempfile.TemporaryDirectory() as directory:
    for name, shapes, turns in () if "--saving" in sys.argv else (
        ("16 tensors of 1M", [(1024, 1024)] * 16, 30),
        ("300 tensors of 16k", [(128, 128)] * 300, 100),
        ("2000 tensors of 64", [(64,)] * 2000, 100),
        *((f"{n} M parameters", shapes_of(n), 5) for n in (() if tiny else (10, 100, 500))),
    ):
        measure_cost(name, shapes[: 4 if tiny else None], 3 if tiny else turns, directory)
    print(f"\nseconds of a save{'ema-pytorch':>20} {'waits':>8} {'beside: first':>14} {'later':>9} {'written':>10}")
    for n_millions in (1,) if tiny else (10, 50, 100, 200, 500):
        for dtype in ("f32", "f16"):
            measure_saving(n_millions, dtype, directory)
    if "--saving" in sys.argv:
        sys.exit()
    print(f"\nerror of norm, of movement{'compensated':>20} {'float32':>24}\n    step update_every")
    measure_accuracy(1024 if tiny else 1_024_000, directory)
