# SPDX-License-Identifier: Apache-2.0
"""The search for the best width, by scores of a Python function."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import os
import tempfile
import time
from typing import TYPE_CHECKING, Any, Callable, ContextManager, Dict, Iterable, List, Literal, Optional, Tuple, Union

from . import _library as c
from ._files import remove
from .averages import Checks, Numbers, PathLike, Series, log
from .errors import UsageError

if TYPE_CHECKING:
    from .averages import ChecksRule, DType


@dataclasses.dataclass(frozen=True)
class Score:
    """The score of a width, and the predicted error of its average."""

    sigma_rel: float
    score: float
    predicted_error: float
    path: Optional[str]


@dataclasses.dataclass(frozen=True)
class Found:
    """The best score, and all scores in the order in which they came.

    ``checks``: of the snapshots; ``warnings``: sentences, also given to the logger.
    """

    best: Score
    scores: List[Score]
    checks: Checks
    warnings: List[str]

    @property
    def sigma_rel(self) -> float:
        return self.best.sigma_rel


def _next(options: c.SearchOptions, scores: List[Score], most: int) -> List[float]:
    n = len(scores)
    widths = (ctypes.c_double * max(n, 1))(*(s.sigma_rel for s in scores))
    values = (ctypes.c_double * max(n, 1))(*(s.score for s in scores))
    found = (ctypes.c_double * most)()
    n_found = ctypes.c_size_t()
    c.call("search_next", found, ctypes.byref(n_found), most, ctypes.byref(options), widths, values, n)
    return list(found[: n_found.value])


def _directory(directory: Optional[PathLike]) -> ContextManager[str]:
    if directory is None:
        return tempfile.TemporaryDirectory(prefix="posthocema-")
    os.makedirs(directory, exist_ok=True)
    return contextlib.nullcontext(os.fspath(directory))


def _state(path: str) -> Optional[Tuple[int, ...]]:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return (found.st_dev, found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


class _Files:
    """The files of averages as they were made, since a function that scores one may change any of them."""

    def __init__(self) -> None:
        self._states: Dict[str, Dict[str, Optional[Tuple[int, ...]]]] = {}

    def note(self, paths: List[str]) -> None:
        time.sleep(0.01)  # a change within one tick of the filesystem's clock would have the same time
        for path in paths:
            inside = [os.path.join(path, name) for name in os.listdir(path)] if os.path.isdir(path) else [path]
            self._states[path] = {file: _state(file) for file in inside}

    def is_changed(self, path: str) -> bool:
        return any(_state(file) != state for file, state in self._states[path].items())


def search(
    series: Series, evaluate: Callable[[Any], float], sigma_rel: Union[Iterable[float], str] = (0.02, 0.25), *,
    maximize: bool = False, at: Optional[Numbers] = None, tolerance: float = 0.005, noise: float = 0, coarse: Optional[int] = None,
    batch: int = 4, directory: Optional[PathLike] = None, state_dict: Optional[Literal["numpy", "torch", "buffer"]] = None,
    extension: str = ".safetensors", dtype: Optional[DType] = None, checks: Optional[ChecksRule] = None, **options: Any,
) -> Found:  # fmt: skip
    """Finds the width whose average ``evaluate`` scores best, as ``posthoc-ema search`` does.

    evaluate: gets the path of an average, or with state_dict="torch" or "numpy" its tensors without a file;
    returns the score. Least is best unless maximize.
    sigma_rel: range of widths, also as "0.05:0.25". tolerance: of the best width. noise: standard deviation of one score.
    batch: averages that are made in one pass over the snapshots; with state_dict their tensors are in memory together.
    directory: keeps the averages; default: a temporary one, each average is removed when it has its score.
    An average that evaluate changes or removes is made again before it is scored or kept, which is logged.
    checks: InputsError before the first score where the snapshots do not fit their labels ("error", the default);
    "warn": search all the same; "off": compare nothing.
    The other options are those of Plan.run().
    """
    if not 1 <= c.integer("batch", ctypes.c_size_t, batch) <= 64:
        raise UsageError(f"batch: expected 1 to 64, found {batch}")
    first, last = c.span("sigma_rel", sigma_rel)
    asked = c.SearchOptions(from_=first, to=last, n_coarse=coarse, tolerance=tolerance, noise=noise, maximizes=maximize)
    scores: List[Score] = []
    files = _Files()
    with series.plan(profile="newest", at=at, checks=checks or "error") as plan:
        found, warnings = plan.checks, plan.warnings
    with _directory(None if state_dict else directory) as place:
        names = os.path.join(place, "phema-{time}-{sigma}" + extension)

        def restore(width: float, path: Optional[str]) -> None:
            if path and files.is_changed(path):
                log.warning("%s: evaluate changed or removed this average, which is made again", path)
                remove(path)
                with series.plan(width, at=at, checks="off" if checks == "off" else "warn", logs=False) as alone:
                    files.note(list(alone.run(names, dtype=dtype, **options).paths))

        while True:
            widths = _next(asked, scores, batch)
            if not widths:
                break
            with series.plan(widths, at=at, checks="off" if checks == "off" else "warn", logs=False) as plan:
                if len(plan) != len(widths):
                    raise UsageError("at: expected one time")
                made = [] if state_dict else plan.run(names, dtype=dtype, **options).paths
                given: List[Any] = plan.state_dicts(dtype=dtype, kind=state_dict) if state_dict else made
                paths: List[Optional[str]] = [*made] or [None] * len(widths)
                files.note(made)
                for j, width in enumerate(widths):
                    restore(width, paths[j])
                    score = float(evaluate(given[j]))
                    scores.append(Score(width, score, plan.targets[j].predicted_error, None if directory is None else paths[j]))
                    log.info("sigma_rel %.4g: score %.6g", width, score)
                    if made and directory is None:
                        remove(made[j])
        for scored in scores:
            restore(scored.sigma_rel, scored.path)
    finite = [s for s in scores if abs(s.score) < float("inf")]
    if not finite:
        raise UsageError("evaluate: no score is finite")
    best = (max if maximize else min)(finite, key=lambda s: s.score)
    for warning in warnings:  # those from before the scores may have been forgotten
        log.warning("%s", warning)
    return Found(best, scores, found, warnings)
