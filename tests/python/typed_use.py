# SPDX-License-Identifier: Apache-2.0
"""A script of a user, for mypy --strict and pyright alone (tests/python/types): it is not run."""
import logging
from pathlib import Path
from typing import Any, Dict, Iterator, List

import numpy as np
import posthocema as ph
from posthocema import Plan, Series, Snapshot, Target
from posthocema.compat import EMA, KarrasEMA, PostHocEMA
from posthocema.torch import Recorder


Array = np.ndarray[Any, np.dtype[Any]]


def widths(series: Series) -> List[float]:
    first: Snapshot = series[0]
    return [first.sigma_rel, *(snapshot.sigma_rel for snapshot in series)]


def show(progress: ph.Progress) -> None:
    print(progress.done_bytes / progress.total_bytes, progress.tensor)


def targets(series: Series) -> Iterator[Target]:
    for plan in (
        series.plan(np.linspace(0.05, 0.2, 4), at=np.int64(1000), max_error=None),
        series.plan(w / 100 for w in range(5, 10)),
        series.plan("0.05:0.25:0.05", metric="walk", checks="error"),
        series.plan(np.float32(0.1), profile=(f"ema:half-life={n}" for n in (10, 20))),
    ):
        yield from plan
        yield plan[0.1]
        yield plan[-1]
        yield from plan[1:]


def tensors(plan: Plan) -> float:
    total = 0.0
    for name, array in plan.iterate(plan[0], dtype="float32"):
        total += float(array.mean()) + len(name)
    for view in plan.state_dict(0.1, kind="buffer", dtype=np.float16).values():
        total += view.nbytes
    return total + float(plan[0].weights.sum())


def one(plan: Plan) -> Array:
    return plan.tensor("w", np.int64(0))  # strict refuses to return Any


def a_view(plan: Plan) -> memoryview:
    return plan.tensor("w", kind="buffer")


def all_arrays(plan: Plan) -> Dict[str, Array]:
    return plan.state_dict()


def train(model: Any, directory: Path) -> List[str]:
    options: Dict[str, Any] = {"average_dtype": "float64"}
    with Recorder(model, "0.05,0.1", dir=directory, times=np.arange(10, 100, 10), dtype="f16", include=["lora"], **options) as recorder:
        recorder.step()
        with recorder.copy_to(width=np.float32(0.1)):
            recorder.wait()
        return [path.upper() for path in recorder.save()]


def train_as_before(model: Any, directory: Path) -> List[str]:
    ema = EMA(model, beta=0.99, update_every=1, checkpoint_folder=directory / "ema")
    ema.update()
    emas = PostHocEMA(model, sigma_rels=(0.05, 0.28), ignore_names={"bias"}, checkpoint_folder=directory)
    for one in (*emas.ema_models, KarrasEMA(model, 0.1)):
        print(one.sigma_rel + one.gamma, one.beta)
    widths, errors = emas.reconstruction_error()
    print(sum(widths) + sum(errors))
    return [path.upper() for path in emas.checkpoint()]


def main(directory: Path) -> Dict[str, float]:
    logging.basicConfig()
    errors: Dict[str, float] = {}
    with ph.open(directory, input_sigma=[0.05, 0.1], include="conv", last=None) as series:
        plan: Plan = series.plan(sigma_rel=[0.05, 0.1], at=1000)
        with plan:
            result = plan.run(directory / "out.safetensors", progress=show, dtype="f16")
            plan.run(directory / "more.safetensors", progress=True, dtype=np.float32, io="mmap")
            for path, target in zip(result.paths, plan.targets):
                errors[path] = target.predicted_error
        found = ph.search(series, lambda path: 0.5, [0.05, 0.1])
        width: float = found.sigma_rel
        design = ph.design(until=10, model=10, sigma_rel=width, disk_bytes=10)
        design.save("run.json")
    try:
        ph.gamma(2)
    except ph.TargetError as error:
        print(error.status + 1)
    factor: float = ph.beta(np.float64(0.05), np.int64(10)) + ph.gamma(np.float32(0.1))
    print(factor, ph.__version__.upper())
    return errors
