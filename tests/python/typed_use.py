# SPDX-License-Identifier: Apache-2.0
"""A script of a user, for mypy --strict alone: it is not run."""
import logging
from pathlib import Path
from typing import Dict, List

import posthocema as ph
from posthocema import Plan, Series


def widths(series: Series) -> List[float]:
    return [snapshot.sigma_rel for snapshot in series.snapshots]


def show(progress: ph.Progress) -> None:
    print(progress.done_bytes / progress.total_bytes, progress.tensor)


def main(directory: Path) -> Dict[str, float]:
    logging.basicConfig()
    errors: Dict[str, float] = {}
    with ph.open(directory, input_sigma=[0.05, 0.1], include="conv") as series:
        plan: Plan = series.plan(sigma_rel=[0.05, 0.1], at=1000)
        with plan:
            result = plan.run(directory / "out.safetensors", progress=show, dtype="f16")
            for path, target in zip(result.paths, plan.targets):
                errors[path] = target.predicted_error
        found = ph.search(series, lambda path: 0.5, (0.05, 0.1))
        width: float = found.sigma_rel
        design = ph.design(until=10, model=10, sigma_rel=width, disk_bytes=10)
        design.save("run.json")
    try:
        ph.gamma(2)
    except ph.TargetError as error:
        print(error.status + 1)
    factor: float = ph.beta(0.05, 10)
    print(factor, ph.__version__.upper())
    return errors
