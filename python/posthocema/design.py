# SPDX-License-Identifier: Apache-2.0
"""What a training should store: widths, times and dtype of snapshots, planned before it begins."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import errno
import json
import math
import os
from typing import TYPE_CHECKING, Any, Dict, Literal, Optional, Tuple

from . import _library as c
from ._files import write_files
from .averages import Numbers, PathLike, Series, gamma, make
from .errors import FileError, OutputError, UsageError, error_of, of_system

if TYPE_CHECKING:
    from .averages import DType

_MOST_BYTES = 1 << 20  # designs take some KiB
_DTYPES = ("f32", "f16", "bf16")


@dataclasses.dataclass(frozen=True)
class Design:
    """Snapshots that a training should store, as in the files of ``posthoc-ema design -o``.

    ``widths`` [n_widths] is the sigma_rel of each average to keep, ``gammas`` [n_widths] its exponent, ``times`` [n_times] the steps at which to save
    all of them, ascending up to ``until``. ``worst_error`` is predicted, relative to the norm of all parameters, for
    the worst of the wanted averages.
    """

    until: int
    unit: str
    motion: str
    model_elements: int
    disk_bytes: int
    widths: Tuple[float, ...]
    gammas: Tuple[float, ...]
    times: Tuple[int, ...]
    dtype: str
    worst_error: float
    worst_sigma_rel: float
    worst_time: int

    def save(self, path: PathLike, replace: bool = False) -> None:
        """Writes the JSON that ``posthoc-ema design -o`` writes; it appears whole or not at all."""
        document = {
            "version": 1,
            **{name: getattr(self, name) for name in ("until", "unit", "motion", "model_elements", "disk_bytes", "widths")},
            "raw": False, "times": self.times, "dtype": self.dtype,
            "averages": [{"sigma_rel": width, "gamma": g} for width, g in zip(self.widths, self.gammas)],
            "worst_error": self.worst_error, "worst_target": {"sigma_rel": self.worst_sigma_rel, "time": self.worst_time},
        }  # fmt: skip
        data = (json.dumps(document, indent=1) + "\n").encode()
        try:
            write_files({os.fspath(path): lambda file: file.write(data)}, replaces=lambda _: replace)
        except OutputError as error:
            if error.errno == errno.EEXIST:
                raise error_of(error.status, f"{os.fspath(path)}: exists already; replace=True replaces it") from error
            raise

    @classmethod
    def load(cls, path: PathLike) -> "Design":
        """Reads a file of ``posthoc-ema design -o`` or :meth:`save`. Raises FileError where it is none."""
        return _read(path)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _is_step(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _read(path: PathLike) -> Design:
    def check(is_right: bool, what: str) -> None:
        if not is_right:
            raise FileError(f"{os.fspath(path)}: is no design: {what}; posthoc-ema design -o FILE writes one")

    try:
        with open(path, "rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise of_system(FileError.status, f"{os.fspath(path)}: {error.strerror}", error.errno, path) from error
    check(len(data) <= _MOST_BYTES, "it is too large")
    found: Any = None
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        check(False, str(error))
    check(isinstance(found, dict) and found.get("version") == 1 and _is_step(found.get("until")), 'expected "version" 1 and "until"')
    check(found.get("dtype") in _DTYPES, 'expected "dtype", f32, f16 or bf16')
    times, averages = found.get("times"), found.get("averages")
    check(isinstance(times, list) and len(times) > 0 and all(map(_is_step, times)), 'expected "times"')
    check(all(a < b for a, b in zip(times, [*times[1:], found["until"] + 1])), 'expected times that ascend from 1 to "until"')
    check(not found.get("raw"), "it has raw parameters beside averages, which are not recorded")
    check(isinstance(averages, list) and 1 <= len(averages) <= 4, 'expected 1 to 4 "averages"')
    for average in averages:
        is_power = isinstance(average, dict) and "half_life" not in average and _is_number(average.get("sigma_rel"))
        check(is_power, 'expected "averages" with sigma_rel, of power functions')
        right = gamma(average["sigma_rel"])
        given = average.setdefault("gamma", right)
        check(_is_number(given) and math.isclose(given, right, rel_tol=1e-6), f"gamma of {average['sigma_rel']} is {right}")
    worst: Dict[str, Any] = found["worst_target"] if isinstance(found.get("worst_target"), dict) else {}

    def number(source: Dict[str, Any], key: str) -> float:
        return float(source[key]) if _is_number(source.get(key)) else math.nan

    def count(source: Dict[str, Any], key: str) -> int:
        return source[key] if _is_step(source.get(key)) else 0

    return Design(
        found["until"], str(found.get("unit", "steps")), str(found.get("motion", "walk")), count(found, "model_elements"),
        count(found, "disk_bytes"), tuple(float(a["sigma_rel"]) for a in averages), tuple(a["gamma"] for a in averages), tuple(times),
        found["dtype"], number(found, "worst_error"), number(worst, "sigma_rel"), count(worst, "time"),
    )  # fmt: skip


def _count_elements(model: Any, params: Any) -> int:
    """The number, or floating-point elements of a torch module's state, tied ones counted once as in the file of a snapshot."""
    if (model is None) == (params is None):
        raise UsageError(f"params: expected this or model, found {'neither' if params is None else 'both'}")
    if params is not None:
        return c.integer("params", ctypes.c_uint64, params)
    if not hasattr(model, "state_dict"):
        return c.integer("model", ctypes.c_uint64, model)
    tensors = {name: t for name, t in model.state_dict().items() if hasattr(t, "is_floating_point")}
    return sum(int(t.numel()) for t in tensors.values() if t.is_floating_point())


def design(
    until: int, model: Any = None, sigma_rel: Optional[Numbers] = None, *, params: Optional[int] = None,
    disk_bytes: Optional[int] = None, max_error: Optional[float] = None, at: Optional[Numbers] = None, after: Optional[float] = None,
    max_widths: Optional[int] = None, input_sigma: Optional[Numbers] = None, dtype: Optional[DType] = None,
    motion: Optional[Literal["walk", "white", "drift", "fall"]] = None, like: Optional[Series] = None,
    even: bool = False, unit: str = "steps",
) -> Design:  # fmt: skip
    """Plans what a training should store, as ``posthoc-ema design`` does: the same search, the same numbers.

    until: steps of the training. params: number of parameters; or model: the torch module, or this number.
    sigma_rel: widths of the averages that will be wanted, or a range "0.05:0.25"; "0.05:0.25:0.05" are five widths.
    disk_bytes: for all snapshots, and/or max_error: the least disk with this worst error; TooInaccurate where none
    is enough. at: times of these averages; after: at any time from here on.
    max_widths: averages to keep, each a float32 copy of the model in the trainer's memory; default 3.
    input_sigma: widths that the training keeps, where they cannot be chosen. dtype: "f16", "f32", "bf16".
    motion: of the parameters: "walk" (default), "white", "drift", "fall"; or like: another training.
    """
    is_range = isinstance(sigma_rel, str) and sigma_rel.count(":") == 1
    first, last = c.span("sigma_rel", sigma_rel) if is_range else (None, None)
    with contextlib.ExitStack() as stack:
        plan = stack.enter_context(like.plan(0.1)) if like is not None else None
        options = c.DesignOptions(
            until=until, model_elements=_count_elements(model, params), disk_bytes=disk_bytes, max_error=max_error,
            sigma_rels=None if is_range else sigma_rel, ats=at, after=after, max_widths=max_widths, dtype=dtype, motion=motion,
            is_even=even, from_=first, to=last, input_sigmas=input_sigma, like=plan._held if plan else None,
        )  # fmt: skip
        free = c.LIBRARY.posthoc_ema_design_free
        made = make(free, "design_make", ctypes.byref(options))
        found = c.info(c.DesignInfo, "design_info", made)
        return Design(
            int(until), unit, "seen" if plan else motion or "walk", options.model_elements, found.disk_bytes,
            tuple(found.widths[: found.n_widths]), tuple(found.gammas[: found.n_widths]), tuple(int(t) for t in found.times[: found.n_times]),
            c.string(found.dtype), found.worst_error, found.worst_sigma_rel, int(found.worst_time),
        )  # fmt: skip
