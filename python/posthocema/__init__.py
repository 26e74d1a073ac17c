# SPDX-License-Identifier: Apache-2.0
"""Averages of a training's parameters, of any length, after the training: posthoc-ema in Python.

    import posthocema as ph

    with ph.open("checkpoints/") as series:
        plan = series.plan(sigma_rel=[0.05, 0.10, 0.15])
        plan.run("averages/", progress=print)

A thin layer over libposthoc-ema: the averages are those of the command, to the last bit. Needs neither NumPy nor
torch; both are used where they are installed. Messages go to the logger "posthocema".
"""

from ._library import LIBRARY as _LIBRARY
from .averages import Checks, Plan, Progress, Result, Series, Snapshot, Target, TensorInfo, beta, gamma, open, sigma_rel, synth, weights
from .design import Design, design
from .errors import Bug, Cancelled, Error, FileError, InputsError, OutputError, ResourceError, TargetError, TooInaccurate, UsageError
from .search import Found, Score, search

__version__: str = _LIBRARY.posthoc_ema_version().decode()

__all__ = [
    "Bug", "Cancelled", "Checks", "Design", "Error", "FileError", "Found", "InputsError", "OutputError", "Plan", "Progress",
    "ResourceError", "Result", "Score", "Series", "Snapshot", "Target", "TargetError", "TensorInfo", "TooInaccurate",
    "UsageError", "beta", "design", "gamma", "open", "search", "sigma_rel", "synth", "weights",
]  # fmt: skip
