# SPDX-License-Identifier: Apache-2.0
"""libposthoc-ema by ctypes: the structs and functions of posthoc-ema.h, and nothing more."""

from __future__ import annotations

import contextlib
import ctypes
import operator
import os
from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    c_char,
    c_char_p,
    c_double,
    c_int,
    c_size_t,
    c_uint,
    c_uint64,
    c_void_p,
)
from decimal import Decimal
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Type, TypeVar

from .errors import UsageError, error_of

VERSION = "0.1"  # major and minor: they decide the interface and the name of the library
_NAME = "libposthoc-ema.so." + VERSION


class Flag(c_int):
    """An int that is 0 or 1."""


def integer(name: str, kind: Any, value: Any) -> int:
    """The value of an integer of C. ctypes would cut one that does not fit to another number."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise TypeError(f"{name}: expected an integer, found {value!r}")
    half = 1 << (8 * ctypes.sizeof(kind) - 1)
    least, most = (-half, half - 1) if kind(-1).value < 0 else (0, 2 * half - 1)
    if number < least:
        raise UsageError(f"{name}: expected {least} or more, found {number}")
    if number > most:
        raise UsageError(f"{name}: expected at most {most}, found {number}")
    return number


def real(name: str, value: Any) -> float:
    """The value of a double of C."""
    try:
        if not isinstance(value, (str, bytes, bytearray)):
            return float(value)
    except OverflowError:
        raise UsageError(f"{name}: expected at most 1.8e308, found an integer that is larger") from None
    except (TypeError, ValueError):
        pass
    raise TypeError(f"{name}: expected a number, found {value!r}")


class _Checked(Structure):
    """A struct whose members hold the given values, or are refused under the names of Python's parameters."""

    _parameters: Dict[str, str] = {}  # where a member has another name

    def __init__(self, **members: Any) -> None:
        kinds: Dict[str, Any] = {name: kind for name, kind, *_ in self._fields_}
        for member, value in members.items():
            if value is None:  # the default, 0
                continue
            name, kind = self._parameters.get(member, member), kinds[member]
            if kind is Flag:
                value = bool(value)
            elif kind is c_double:
                value = real(name, value)
            elif kind in (c_int, c_uint, c_uint64, c_size_t):
                value = integer(name, kind, value)
            elif hasattr(value, "_as_parameter_"):
                self._pointed_to = value  # lives as long as this struct
                value = value._as_parameter_
            setattr(self, member, value)


class _Sized(_Checked):
    """A struct that begins with its size."""

    def __init__(self, **members: Any) -> None:
        super().__init__(**members)
        self.size = ctypes.sizeof(self)


class ErrorMessage(Structure):
    _fields_ = [("message", c_char * 1024)]


class SeriesOptions(_Sized):
    _fields_ = [
        ("size", c_size_t),
        ("layout", c_char_p),
        ("name_regex", c_char_p),
        ("unit", c_char_p),
        ("key", c_char_p),
        ("input_sigmas", POINTER(c_double)),
        ("n_input_sigmas", c_size_t),
        ("input_profiles", POINTER(c_char_p)),
        ("n_input_profiles", c_size_t),
        ("update_every", c_uint64),
        ("from_", c_double),
        ("to", c_double),
        ("every", c_uint64),
        ("last", c_uint64),
        ("includes", POINTER(c_char_p)),
        ("excludes", POINTER(c_char_p)),
        ("n_includes", c_size_t),
        ("n_excludes", c_size_t),
        ("allow_globals", POINTER(c_char_p)),
        ("n_allow_globals", c_size_t),
        ("resets", POINTER(c_char_p)),
        ("n_resets", c_size_t),
        ("time_offset", c_double),
        ("use", c_char_p),
        ("run", c_char_p),
    ]


class SeriesInfo(_Sized):
    _fields_ = [
        ("size", c_size_t),
        ("layout", c_char_p),
        ("unit", c_char_p),
        ("n_snapshots", c_size_t),
        ("n_tensors", c_size_t),
        ("n_averaged", c_size_t),
        ("n_notes", c_size_t),
        ("notes", POINTER(c_char_p)),
        ("times", c_char_p),
        ("field", c_char_p),
        ("n_sets", c_size_t),
        ("n_left_out", c_size_t),
    ]


class SetInfo(_Sized):
    _fields_ = [
        ("size", c_size_t),
        ("name", c_char_p),
        ("role", c_char_p),
        ("by", c_char_p),
        ("margin", c_double),
    ]


class LeftOutInfo(_Sized):
    _fields_ = [("size", c_size_t), ("file", c_char_p), ("reason", c_char_p)]


class SnapshotInfo(_Sized):
    _fields_ = [
        ("size", c_size_t),
        ("file", c_char_p),
        ("named_time", c_double),
        ("time", c_double),
        ("sigma_rel", c_double),
        ("gamma", c_double),
        ("profile", c_char_p),
        ("bytes", c_uint64),
    ]


class PlanOptions(_Sized):
    _fields_ = [
        ("size", c_size_t),
        ("sigma_rels", POINTER(c_double)),
        ("n_sigma_rels", c_size_t),
        ("profiles", POINTER(c_char_p)),
        ("n_profiles", c_size_t),
        ("ats", POINTER(c_double)),
        ("n_ats", c_size_t),
        ("rules", POINTER(c_char_p)),
        ("n_rules", c_size_t),
        ("metric", c_char_p),
        ("max_error", c_double),
        ("max_ram_bytes", c_uint64),
        ("checks", c_char_p),
        ("schedule", c_char_p),
    ]


class PlanInfo(_Sized):
    _fields_ = [
        ("size", c_size_t),
        ("metric", c_char_p),
        ("n_snapshots", c_size_t),
        ("n_targets", c_size_t),
        ("n_tensors", c_size_t),
        ("verdict", c_char_p),
        ("reason", c_char_p),
        ("suspect", c_size_t),
        ("n_warnings", c_size_t),
        ("warnings", POINTER(c_char_p)),
    ]


class TargetInfo(_Sized):
    _fields_ = [
        ("size", c_size_t),
        ("named_time", c_double),
        ("time", c_double),
        ("sigma_rel", c_double),
        ("gamma", c_double),
        ("profile", c_char_p),
        ("weights", POINTER(c_double)),
        ("predicted_error", c_double),
        ("profile_error", c_double),
        ("norm1", c_double),
        ("norm2", c_double),
    ]


class TensorInfo(_Sized):
    _fields_ = [
        ("size", c_size_t),
        ("name", c_void_p),
        ("name_size", c_size_t),
        ("dtype", c_char_p),
        ("shape", POINTER(c_uint64)),
        ("rank", c_size_t),
        ("bytes", c_uint64),
        ("is_averaged", c_int),
        ("same_as", c_size_t),
    ]


class ProgressInfo(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("done_bytes", c_uint64),
        ("total_bytes", c_uint64),
        ("elapsed_s", c_double),
        ("tensor", c_void_p),
        ("tensor_size", c_size_t),
    ]


ProgressCallback = CFUNCTYPE(c_int, c_void_p, POINTER(ProgressInfo))


class ReadOptions(_Sized):
    _fields_ = [
        ("size", c_size_t),
        ("dtype", c_char_p),
        ("overflow", c_char_p),
        ("io", c_char_p),
        ("threads", c_uint),
        ("progress", ProgressCallback),
        ("context", c_void_p),
    ]


class RunOptions(_Sized):
    _fields_ = [
        ("size", c_size_t),
        ("into", c_char_p),
        ("dtype", c_char_p),
        ("overflow", c_char_p),
        ("io", c_char_p),
        ("shard_bytes", c_uint64),
        ("level", c_int),
        ("replaces", Flag),
        ("skips_sync", Flag),
        ("drops_cache", Flag),
        ("verifies", Flag),
        ("refuses_nan", Flag),
        ("threads", c_uint),
        ("progress", ProgressCallback),
        ("context", c_void_p),
        ("input_hash", c_char_p),
    ]


class RunResult(_Sized):
    _fields_ = [
        ("size", c_size_t),
        ("read_bytes", c_uint64),
        ("written_bytes", c_uint64),
        ("elapsed_s", c_double),
        ("n_nan", c_uint64),
        ("n_inf", c_uint64),
        ("n_overflow", c_uint64),
        ("n_averaged", c_size_t),
        ("n_copied", c_size_t),
        ("n_constant", c_size_t),
        ("peak_anonymous_bytes", c_uint64),
    ]


class SearchOptions(_Sized):
    _parameters = {"n_coarse": "coarse", "from_": "sigma_rel", "to": "sigma_rel"}
    _fields_ = [
        ("size", c_size_t),
        ("from_", c_double),
        ("to", c_double),
        ("n_coarse", c_size_t),
        ("tolerance", c_double),
        ("noise", c_double),
        ("maximizes", Flag),
    ]


class DesignOptions(_Sized):
    _parameters = {"model_elements": "model"}
    _fields_ = [
        ("size", c_size_t),
        ("until", c_double),
        ("model_elements", c_uint64),
        ("disk_bytes", c_uint64),
        ("max_error", c_double),
        ("sigma_rels", POINTER(c_double)),
        ("n_sigma_rels", c_size_t),
        ("ats", POINTER(c_double)),
        ("n_ats", c_size_t),
        ("after", c_double),
        ("max_widths", c_size_t),
        ("dtype", c_char_p),
        ("motion", c_char_p),
        ("is_even", Flag),
        ("from_", c_double),
        ("to", c_double),
        ("input_sigmas", POINTER(c_double)),
        ("n_input_sigmas", c_size_t),
        ("like", c_void_p),
    ]


class DesignInfo(_Sized):
    _fields_ = [
        ("size", c_size_t),
        ("n_widths", c_size_t),
        ("widths", POINTER(c_double)),
        ("gammas", POINTER(c_double)),
        ("n_times", c_size_t),
        ("times", POINTER(c_double)),
        ("dtype", c_char_p),
        ("disk_bytes", c_uint64),
        ("worst_error", c_double),
        ("worst_sigma_rel", c_double),
        ("worst_time", c_double),
    ]


class Profile(_Checked):
    _parameters = {"t": "time"}
    _fields_ = [("gamma", c_double), ("t", c_double), ("update_every", c_uint64)]


def _candidates() -> List[str]:
    """Where the library may be: a chosen file, beside this file, or where the loader looks."""
    chosen = os.environ.get("POSTHOC_EMA_LIBRARY")
    if chosen:
        return [chosen]
    beside = Path(__file__).with_name(_NAME)
    return [str(beside)] if beside.exists() else [_NAME]


def _load() -> ctypes.CDLL:
    path = _candidates()[0]
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(
            f"{path}: cannot be loaded: {error}; install the wheel or libposthoc-ema, or set "
            "POSTHOC_EMA_LIBRARY to the path of the library"
        ) from error
    library.posthoc_ema_version.restype = c_char_p
    found = library.posthoc_ema_version().decode()
    if found.rsplit(".", 1)[0] != VERSION:
        raise ImportError(f"{path}: expected version {VERSION}, found {found}")
    return library


LIBRARY = _load()
_ERROR = POINTER(ErrorMessage)

# Functions that return a status, with their arguments before the error.
_FALLIBLE: Dict[str, List[Any]] = {
    "gamma": [POINTER(c_double), c_double],
    "weights": [
        POINTER(c_double),
        POINTER(Profile),
        c_size_t,
        POINTER(Profile),
        c_size_t,
        c_char_p,
    ],
    "design_make": [POINTER(c_void_p), POINTER(DesignOptions)],
    "design_info": [c_void_p, POINTER(DesignInfo)],
    "series_open": [POINTER(c_void_p), c_char_p, POINTER(SeriesOptions)],
    "series_info": [c_void_p, POINTER(SeriesInfo)],
    "series_snapshot": [c_void_p, c_size_t, POINTER(SnapshotInfo)],
    "series_set": [c_void_p, c_size_t, POINTER(SetInfo)],
    "series_left_out": [c_void_p, c_size_t, POINTER(LeftOutInfo)],
    "plan_make": [POINTER(c_void_p), c_void_p, POINTER(PlanOptions)],
    "plan_info": [c_void_p, POINTER(PlanInfo)],
    "plan_snapshot": [c_void_p, c_size_t, POINTER(SnapshotInfo)],
    "plan_target": [c_void_p, c_size_t, POINTER(TargetInfo)],
    "plan_tensor": [c_void_p, c_size_t, c_char_p, POINTER(TensorInfo)],
    "read": [c_void_p, c_size_t, c_size_t, POINTER(ReadOptions), c_void_p, c_size_t],
    "run": [c_void_p, c_char_p, POINTER(RunOptions), POINTER(RunResult)],
    "search_next": [
        POINTER(c_double),
        POINTER(c_size_t),
        c_size_t,
        POINTER(SearchOptions),
        POINTER(c_double),
        POINTER(c_double),
        c_size_t,
    ],
}
for _name, _arguments in _FALLIBLE.items():
    _function = getattr(LIBRARY, "posthoc_ema_" + _name)
    _function.restype = c_int
    _function.argtypes = [*_arguments, _ERROR]
LIBRARY.posthoc_ema_sigma_rel.restype = c_double
LIBRARY.posthoc_ema_sigma_rel.argtypes = [c_double]
LIBRARY.posthoc_ema_beta.restype = c_double
LIBRARY.posthoc_ema_beta.argtypes = [c_double, c_uint64]
LIBRARY.posthoc_ema_design_free.restype = None
LIBRARY.posthoc_ema_design_free.argtypes = [c_void_p]
LIBRARY.posthoc_ema_series_close.restype = None
LIBRARY.posthoc_ema_series_close.argtypes = [c_void_p]
LIBRARY.posthoc_ema_plan_free.restype = None
LIBRARY.posthoc_ema_plan_free.argtypes = [c_void_p]
LIBRARY.posthoc_ema_output.restype = c_char_p
LIBRARY.posthoc_ema_output.argtypes = [c_void_p, c_size_t]
LIBRARY.posthoc_ema_handle_signals.restype = None
LIBRARY.posthoc_ema_handle_signals.argtypes = []


_calls: Dict[object, None] = {}  # those of all threads that have not returned
_is_cut_off = False  # this process was forked during a call, and locks of the library may be held forever


def _note_fork() -> None:
    global _is_cut_off
    _is_cut_off = _is_cut_off or bool(_calls)


os.register_at_fork(after_in_child=_note_fork)


@contextlib.contextmanager
def calling() -> Iterator[None]:
    """Surrounds a call of the library, and the lock that it needs."""
    if _is_cut_off:
        raise UsageError(
            "this process was forked while another thread or a progress callback used posthocema, which cannot go on here; "
            "fork earlier, or start the process with the method 'spawn'"
        )
    call = object()
    _calls[call] = None
    try:
        yield
    finally:
        del _calls[call]


def status_of(name: str, *arguments: Any) -> "tuple[int, str]":
    """Calls a function of _FALLIBLE without the GIL. Returns its status and message."""
    error = ErrorMessage()
    with calling():
        status = getattr(LIBRARY, "posthoc_ema_" + name)(*arguments, ctypes.byref(error))
    return status, error.message.decode("utf-8", "replace")


def call(name: str, *arguments: Any) -> None:
    """The same; a failure raises the exception of its status."""
    status, message = status_of(name, *arguments)
    if status:
        raise error_of(status, message)


T = TypeVar("T", bound=_Sized)


def info(kind: Type[T], name: str, *arguments: Any) -> T:
    """A struct that a function fills."""
    filled = kind()
    call(name, *arguments, ctypes.byref(filled))
    return filled


def text(value: "Optional[str | os.PathLike[str]]") -> Optional[bytes]:
    """A string or path for C."""
    if value is None:
        return None
    encoded = os.fsencode(value)
    if b"\0" in encoded:
        raise UsageError(f"{value!r}: contains a NUL")
    return encoded


def several(values: Any) -> "tuple[Any, ...]":
    """The values of an option that takes one or several: None is none, a string or a scalar of NumPy one."""
    if values is None:
        return ()
    try:
        return (values,) if isinstance(values, (str, bytes)) else tuple(values)
    except TypeError:
        return (values,)


def texts(values: Any) -> "tuple[Any, int]":
    """An array of strings, and its length."""
    items = [text(value) for value in several(values)]
    return ((c_char_p * len(items))(*items) if items else None), len(items)


def numbers(name: str, values: Any) -> List[float]:
    """The numbers of an option; or those of a text such as "0.1", "0.05,0.1" and "0.05:0.25:0.05", with both ends."""
    if not isinstance(values, str):
        return [real(name, value) for value in several(values)]
    found: List[float] = []
    try:
        for item in values.split(","):
            first, last, step = map(Decimal, item.split(":")) if ":" in item else (Decimal(item), Decimal(item), Decimal(1))
            count = (last - first) / step
            if not 0 <= count <= 100_000 or count != int(count):
                raise UsageError(f"{name}: the step {step} does not lead from {first} to {last}; both ends are included")
            found += [float(first + i * step) for i in range(int(count) + 1)]
    except (ArithmeticError, ValueError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"{name}: expected numbers, such as '0.1', '0.05,0.1' or '0.05:0.25:0.05', found '{values}'") from None
    return found


def span(name: str, values: Any) -> "tuple[float, float]":
    """The two ends of a range, also of a text such as "0.05:0.25"."""
    found = numbers(name, values.replace(":", ",") if isinstance(values, str) else values)
    if len(found) != 2:
        raise UsageError(f"{name}: expected the two ends of a range, such as '0.05:0.25', found {values!r}")
    return found[0], found[1]


_DTYPES = {"float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16"}


def dtype(value: Any) -> Optional[str]:
    """The library's name of a dtype: of "f16", "float16", torch.float16, numpy.float16 and its numpy.dtype."""
    if value is None:
        return None
    name = value if isinstance(value, str) else getattr(value, "name", getattr(value, "__name__", str(value)))
    name = name.rsplit(".", 1)[-1].lower()
    return _DTYPES.get(name, name)


def doubles(name: str, values: Any) -> "tuple[Any, int]":
    """An array of numbers, and its length."""
    items = numbers(name, values)
    return ((c_double * len(items))(*items) if items else None), len(items)


def string(value: Optional[bytes]) -> str:
    """A string of the library."""
    return optional(value) or ""


def optional(value: Optional[bytes]) -> Optional[str]:
    """The same, or None for NULL."""
    return None if value is None else value.decode("utf-8", "surrogateescape")
