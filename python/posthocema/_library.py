# SPDX-License-Identifier: Apache-2.0
"""libposthoc-ema by ctypes: the structs and functions of posthoc-ema.h, and nothing more."""

from __future__ import annotations

import contextlib
import ctypes
import operator
import os
from ctypes import CFUNCTYPE, POINTER, Structure, c_char, c_char_p, c_double, c_int, c_size_t, c_uint, c_uint64, c_void_p
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
        if not isinstance(value, (bool, str, bytes, bytearray)):
            return float(value)
    except OverflowError:
        raise UsageError(f"{name}: expected at most 1.8e308, found an integer that is larger") from None
    except (TypeError, ValueError):
        pass
    raise TypeError(f"{name}: expected a number, found {value!r}")


class _Checked(Structure):
    """A struct whose members hold the given values, or are refused under the names of Python's parameters.

    A member "widths" is an array of the values of the parameter "width", and n_widths their number.
    """

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
            elif kind is c_char_p:
                value = text(dtype(value) if member == "dtype" else value)
            elif kind in (c_int, c_uint, c_uint64, c_size_t):
                value = integer(name, kind, value)
            elif kind in (POINTER(c_double), POINTER(c_char_p)):
                is_text = kind is POINTER(c_char_p)
                items: List[Any] = [text(item) for item in several(value)] if is_text else numbers(name[:-1], value)
                setattr(self, "n_" + member, len(items))
                value = (kind._type_ * len(items))(*items) if items else None  # NULL: the library tells none from several
            elif hasattr(value, "_as_parameter_"):
                self._pointed_to = value  # lives as long as this struct
                value = value._as_parameter_
            setattr(self, member, value)


class _Sized(_Checked):
    """A struct that begins with its size."""

    def __init__(self, **members: Any) -> None:
        super().__init__(**members)
        self.size = ctypes.sizeof(self)


def _members(*groups: "tuple[Any, str]") -> "List[tuple[str, Any]]":
    """The members of a struct, of groups of one type."""
    return [(name, kind) for kind, names in groups for name in names.split()]


class ErrorMessage(Structure):
    _fields_ = [("message", c_char * 1024)]


class SeriesOptions(_Sized):
    _fields_ = _members(
        (c_size_t, "size"), (c_char_p, "layout name_regex unit key"), (POINTER(c_double), "input_sigmas"), (c_size_t, "n_input_sigmas"),
        (POINTER(c_char_p), "input_profiles"), (c_size_t, "n_input_profiles"), (c_uint64, "update_every"), (c_double, "from_ to"),
        (c_uint64, "every last"), (POINTER(c_char_p), "includes excludes"), (c_size_t, "n_includes n_excludes"),
        (POINTER(c_char_p), "allow_globals"), (c_size_t, "n_allow_globals"), (POINTER(c_char_p), "resets"), (c_size_t, "n_resets"),
        (c_double, "time_offset"), (c_char_p, "use run"),
    )  # fmt: skip


class SeriesInfo(_Sized):
    _fields_ = _members(
        (c_size_t, "size"), (c_char_p, "layout unit"), (c_size_t, "n_snapshots n_tensors n_averaged n_notes"),
        (POINTER(c_char_p), "notes"), (c_char_p, "times field"), (c_size_t, "n_sets n_left_out"),
    )  # fmt: skip


class SetInfo(_Sized):
    _fields_ = _members((c_size_t, "size"), (c_char_p, "name role by"), (c_double, "margin"))


class LeftOutInfo(_Sized):
    _fields_ = _members((c_size_t, "size"), (c_char_p, "file reason"))


class SnapshotInfo(_Sized):
    _fields_ = _members(
        (c_size_t, "size"), (c_char_p, "file"), (c_double, "named_time time sigma_rel gamma"), (c_char_p, "profile"), (c_uint64, "bytes"),
    )  # fmt: skip


class PlanOptions(_Sized):
    _fields_ = _members(
        (c_size_t, "size"), (POINTER(c_double), "sigma_rels"), (c_size_t, "n_sigma_rels"), (POINTER(c_char_p), "profiles"),
        (c_size_t, "n_profiles"), (POINTER(c_double), "ats"), (c_size_t, "n_ats"), (POINTER(c_char_p), "rules"), (c_size_t, "n_rules"),
        (c_char_p, "metric"), (c_double, "max_error"), (c_uint64, "max_ram_bytes"), (c_char_p, "checks schedule"),
    )  # fmt: skip


class PlanInfo(_Sized):
    _fields_ = _members(
        (c_size_t, "size"), (c_char_p, "metric"), (c_size_t, "n_snapshots n_targets n_tensors"), (c_char_p, "verdict reason"),
        (c_size_t, "suspect n_warnings"), (POINTER(c_char_p), "warnings"),
    )  # fmt: skip


class TargetInfo(_Sized):
    _fields_ = _members(
        (c_size_t, "size"), (c_double, "named_time time sigma_rel gamma"), (c_char_p, "profile"), (POINTER(c_double), "weights"),
        (c_double, "predicted_error profile_error norm1 norm2"),
    )  # fmt: skip


class TensorInfo(_Sized):
    _fields_ = _members(
        (c_size_t, "size"), (c_void_p, "name"), (c_size_t, "name_size"), (c_char_p, "dtype"), (POINTER(c_uint64), "shape"),
        (c_size_t, "rank"), (c_uint64, "bytes"), (c_int, "is_averaged"), (c_size_t, "same_as"),
    )  # fmt: skip


class ProgressInfo(Structure):
    _fields_ = _members(
        (c_size_t, "size"), (c_uint64, "done_bytes total_bytes"), (c_double, "elapsed_s"), (c_void_p, "tensor"),
        (c_size_t, "tensor_size"),
    )  # fmt: skip


ProgressCallback = CFUNCTYPE(c_int, c_void_p, POINTER(ProgressInfo))


class ReadOptions(_Sized):
    _fields_ = _members(
        (c_size_t, "size"), (c_char_p, "dtype overflow io"), (c_uint, "threads"), (ProgressCallback, "progress"), (c_void_p, "context"),
    )  # fmt: skip


class RunOptions(_Sized):
    _fields_ = _members(
        (c_size_t, "size"), (c_char_p, "into dtype overflow io"), (c_uint64, "shard_bytes"), (c_int, "level"),
        (Flag, "replaces skips_sync drops_cache verifies refuses_nan"), (c_uint, "threads"), (ProgressCallback, "progress"),
        (c_void_p, "context"), (c_char_p, "input_hash"),
    )  # fmt: skip


class RunResult(_Sized):
    _fields_ = _members(
        (c_size_t, "size"), (c_uint64, "read_bytes written_bytes"), (c_double, "elapsed_s"), (c_uint64, "n_nan n_inf n_overflow"),
        (c_size_t, "n_averaged n_copied n_constant"), (c_uint64, "peak_anonymous_bytes"),
    )  # fmt: skip


class SearchOptions(_Sized):
    _parameters = {"n_coarse": "coarse", "from_": "sigma_rel", "to": "sigma_rel"}
    _fields_ = _members(
        (c_size_t, "size"), (c_double, "from_ to"), (c_size_t, "n_coarse"), (c_double, "tolerance noise"), (Flag, "maximizes"),
    )  # fmt: skip


class DesignOptions(_Sized):
    _parameters = {"model_elements": "model"}
    _fields_ = _members(
        (c_size_t, "size"), (c_double, "until"), (c_uint64, "model_elements disk_bytes"), (c_double, "max_error"),
        (POINTER(c_double), "sigma_rels"), (c_size_t, "n_sigma_rels"), (POINTER(c_double), "ats"), (c_size_t, "n_ats"),
        (c_double, "after"), (c_size_t, "max_widths"), (c_char_p, "dtype motion"), (Flag, "is_even"), (c_double, "from_ to"),
        (POINTER(c_double), "input_sigmas"), (c_size_t, "n_input_sigmas"), (c_void_p, "like"),
    )  # fmt: skip


class DesignInfo(_Sized):
    _fields_ = _members(
        (c_size_t, "size n_widths"), (POINTER(c_double), "widths gammas"), (c_size_t, "n_times"), (POINTER(c_double), "times"),
        (c_char_p, "dtype"), (c_uint64, "disk_bytes"), (c_double, "worst_error worst_sigma_rel worst_time"),
    )  # fmt: skip


class Profile(_Checked):
    _parameters = {"t": "time"}
    _fields_ = _members((c_double, "gamma t"), (c_uint64, "update_every"))


def _load() -> ctypes.CDLL:
    """A chosen file, that beside this file, or what the loader finds."""
    beside = Path(__file__).with_name(_NAME)
    path = os.environ.get("POSTHOC_EMA_LIBRARY") or (str(beside) if beside.exists() else _NAME)
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        remedy = "install the wheel or libposthoc-ema, or set POSTHOC_EMA_LIBRARY to the path of the library"
        raise ImportError(f"{path}: cannot be loaded: {error}; {remedy}") from error
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
    "weights": [POINTER(c_double), POINTER(Profile), c_size_t, POINTER(Profile), c_size_t, c_char_p],
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
    "read_all": [c_void_p, c_size_t, c_size_t, POINTER(ReadOptions), POINTER(c_void_p), POINTER(c_size_t)],
    "run": [c_void_p, c_char_p, POINTER(RunOptions), POINTER(RunResult)],
    "search_next": [POINTER(c_double), POINTER(c_size_t), c_size_t, POINTER(SearchOptions), POINTER(c_double), POINTER(c_double), c_size_t],
}  # fmt: skip
for _name, _arguments in _FALLIBLE.items():
    _function = getattr(LIBRARY, "posthoc_ema_" + _name)
    _function.restype = c_int
    _function.argtypes = [*_arguments, _ERROR]
for _name, _result, *_arguments in (
    ("sigma_rel", c_double, c_double), ("beta", c_double, c_double, c_uint64), ("output", c_char_p, c_void_p, c_size_t),
    ("design_free", None, c_void_p), ("series_close", None, c_void_p), ("plan_free", None, c_void_p), ("handle_signals", None),
):  # fmt: skip
    _function = getattr(LIBRARY, f"posthoc_ema_{_name}")
    _function.restype, _function.argtypes = _result, _arguments


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
        why = "this process was forked while another thread or a progress callback used posthocema, which cannot go on here"
        raise UsageError(f"{why}; fork earlier, or start the process with the method 'spawn'")
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


def string(value: Optional[bytes]) -> str:
    """A string of the library."""
    return optional(value) or ""


def optional(value: Optional[bytes]) -> Optional[str]:
    """The same, or None for NULL."""
    return None if value is None else value.decode("utf-8", "surrogateescape")
