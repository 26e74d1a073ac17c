# SPDX-License-Identifier: Apache-2.0
"""Series, plans and runs: a thin layer over libposthoc-ema."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import difflib
import html
import importlib
import inspect
import logging
import math
import os
import signal
import sys
import threading
from typing import (
    TYPE_CHECKING, Any, Callable, Dict, Iterable, Iterator, List, Literal, Optional, Sequence, Set, SupportsFloat, SupportsIndex, Tuple,
    TypeVar, Union, overload,
)  # fmt: skip

from . import _library as c, _pretrained
from .errors import Cancelled, TargetError, UsageError, error_of

if TYPE_CHECKING:
    import numpy
    import torch

    Array = numpy.ndarray[Any, numpy.dtype[Any]]
    DType = Union[
        Literal["same", "f32", "f16", "bf16", "float32", "float16", "bfloat16"],
        torch.dtype, numpy.dtype[Any], type[numpy.generic],
    ]  # fmt: skip
    AsNumpy = Literal["numpy"]
    AsTorch = Literal["torch"]
    AsBuffer = Literal["buffer"]
    Metric = Literal["motion", "walk", "profile"]
    ChecksRule = Literal["warn", "error", "off"]
    Overflow = Literal["error", "saturate", "inf"]
    Io = Literal["auto", "mmap", "read", "direct"]
    Verdict = Literal["unknown", "unchecked", "fits", "doubtful", "wrong"]

PathLike = Union[str, "os.PathLike[str]"]
Numbers = Union[SupportsFloat, Iterable[SupportsFloat], str]
Texts = Union[str, Iterable[str]]

R = TypeVar("R")

log = logging.getLogger("posthocema")

# dtypes of safetensors as those of NumPy, and the letters of memoryview.cast
_NUMPY = {
    "BOOL": "?", "U8": "u1", "I8": "i1", "U16": "<u2", "I16": "<i2", "U32": "<u4", "I32": "<i4",
    "U64": "<u8", "I64": "<i8", "F16": "<f2", "F32": "<f4", "F64": "<f8", "C64": "<c8", "C128": "<c16",
}  # fmt: skip
_CAST = {
    "BOOL": "?", "U8": "B", "I8": "b", "U16": "H", "I16": "h", "U32": "I", "I32": "i", "U64": "Q", "I64": "q", "F32": "f", "F64": "d",
}  # fmt: skip
_TORCH = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16", "U32": "uint32", "I32": "int32", "U64": "uint64",
    "I64": "int64", "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64", "C64": "complex64", "C128": "complex128",
    "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu",
    "F8_E4M3FNUZ": "float8_e4m3fnuz", "F8_E5M2FNUZ": "float8_e5m2fnuz",
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """A checkpoint of the training, with the profile it was averaged by.

    ``named_time`` is the time in its name, ``time`` the end of its profile on the clock of the averages
    (steps, images, ...). ``sigma_rel`` and ``gamma`` are those of a power function, else NaN.
    """

    file: str
    named_time: float
    time: float
    sigma_rel: float
    gamma: float
    profile: str
    bytes: int


@dataclasses.dataclass(frozen=True, eq=False)
class Target:
    """An average that a plan makes. Equal targets have equal numbers.

    ``weights`` [n_snapshots] is the coefficient of each snapshot, 0 for those left out: a NumPy array of
    float64, or a tuple where NumPy is missing. ``predicted_error`` is relative to the norm of all parameters,
    NaN where unknown.
    """

    index: int
    named_time: float
    time: float
    sigma_rel: float
    gamma: float
    profile: str
    weights: numpy.ndarray[Any, numpy.dtype[numpy.float64]] = dataclasses.field(repr=False)
    predicted_error: float
    profile_error: float
    norm1: float
    norm2: float

    def _values(self) -> Tuple[Any, ...]:
        names = (field.name for field in dataclasses.fields(self) if field.name != "weights")
        return (*(repr(getattr(self, name)) for name in names), *map(float, self.weights))  # NaN equals NaN

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Target) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())


Which = Union[SupportsFloat, Target]  # a target: its index, its width, or itself


@dataclasses.dataclass(frozen=True)
class TensorInfo:
    """A tensor of the averages, as a run writes it. ``dtype`` is a name of safetensors, such as "BF16"."""

    index: int
    name: str
    dtype: str
    shape: Tuple[int, ...]
    bytes: int
    is_averaged: bool
    same_as: int


@dataclasses.dataclass(frozen=True)
class Checks:
    """Whether the snapshots are what their labels say.

    ``verdict``: "unknown", "unchecked", "fits", "doubtful" or "wrong". ``suspect`` is the index of the snapshot that is
    blamed, or None.
    """

    verdict: Verdict
    reason: str
    suspect: Optional[int]


@dataclasses.dataclass(frozen=True)
class Progress:
    """How far a run is: bytes of snapshots, seconds, and the name of a tensor in work."""

    done_bytes: int
    total_bytes: int
    elapsed_s: float
    tensor: str

    def __str__(self) -> str:
        percent = 100 * self.done_bytes / self.total_bytes if self.total_bytes else 100
        return f"{percent:.0f} % of {self.total_bytes / 2**20:.1f} MiB read, {self.elapsed_s:.1f} s"


@dataclasses.dataclass(frozen=True)
class Result:
    """What a run has done. ``paths`` [n_targets] are the outputs, in the order of the targets."""

    paths: List[str]
    read_bytes: int
    written_bytes: int
    elapsed_s: float
    n_nan: int
    n_inf: int
    n_overflow: int
    n_averaged: int
    n_copied: int
    n_constant: int
    peak_anonymous_bytes: int


def _record(kind: Callable[..., R], found: Any, **others: Any) -> R:
    """A dataclass of the members of a struct that have its names, and of others."""
    names = [field.name for field in dataclasses.fields(kind) if field.name not in others]  # type: ignore[arg-type]
    values = {name: getattr(found, name) for name in names}
    return kind(**{n: c.string(v) if isinstance(v, bytes) else v for n, v in values.items()}, **others)


class _Signals:
    """Holds back Ctrl-C and SIGTERM that have a handler in Python, until the library has returned.

    A handler that raises inside of a callback of ctypes would be lost there.
    """

    def __init__(self) -> None:
        self.arrived: List[int] = []
        self._before: Dict[int, Any] = {}

    def __enter__(self) -> "_Signals":
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if callable(signal.getsignal(number)):
                    self._before[number] = signal.signal(number, self._note)
        return self

    def _note(self, number: int, frame: Any) -> None:
        self.arrived.append(number)

    def stops(self, *_: Any) -> int:
        """A callback of the library: other than 0 where a signal has arrived."""
        return len(self.arrived)

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        for number in self.arrived:
            self._before[number](number, sys._getframe(1))


@contextlib.contextmanager
def _reporting(progress: Any) -> Iterator[Optional[Callable[[Progress], object]]]:
    """A function that is told the progress; of True one that shows it, by tqdm where that is installed."""
    if progress is not True:
        yield progress or None
        return
    try:
        from tqdm.auto import tqdm
    except ImportError:
        try:
            yield lambda found: print(f"\r{found}", end="", file=sys.stderr, flush=True)
        finally:
            print(file=sys.stderr)
        return
    with tqdm(unit="B", unit_scale=True, unit_divisor=1024) as bar:

        def show(found: Progress) -> None:
            bar.total = found.total_bytes
            bar.update(found.done_bytes - bar.n)

        yield show


def interruptible(function: Callable[[], R]) -> R:
    """What the function returns or raises. Called in the main thread, it runs in another one: Ctrl-C ends the wait for it.

    It then comes to its end alone, and its result is dropped.
    """
    if threading.current_thread() is not threading.main_thread():
        return function()
    results: List[R] = []
    errors: List[BaseException] = []
    begun, ended = threading.Event(), threading.Event()

    def run() -> None:
        begun.set()
        try:
            results.append(function())
        except BaseException as error:  # raised by the thread that waits
            errors.append(error)
        ended.set()

    thread = threading.Thread(target=run, name="posthocema", daemon=True)
    try:
        thread.start()
        # A signal that arrives just before a wait, or in another thread, does not end it. After a join that is
        # interrupted, CPython 3.11 takes a running thread for one that has ended.
        while not ended.wait(0.1):
            pass
    except BaseException:
        begun.wait(1)  # Python crashes when it ends while a thread begins
        raise
    if errors:
        raise errors.pop()
    return results.pop()


class Owned:
    """A pointer of the library, as an argument of its functions. Its object is freed with the last reference to this
    one: calls that run hold one.
    """

    def __init__(self, pointer: ctypes.c_void_p, free: Callable[[ctypes.c_void_p], None]) -> None:
        self._as_parameter_ = pointer
        self._free = free
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._user: Optional[int] = None  # the thread that has the lock

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """The object is used by this thread alone: those that come meanwhile wait."""
        if self._user == threading.get_ident():
            raise UsageError("a progress callback cannot run or read the plan that calls it")
        with c.calling(), self._lock:
            self._user = threading.get_ident()
            try:
                yield
            finally:
                self._user = None

    def __reduce__(self) -> Any:
        raise TypeError("a pointer cannot be copied or pickled")

    def __del__(self, process: Callable[[], int] = os.getpid) -> None:
        if self._process == process():  # a forked process has a copy, and the locks of the library as they were
            self._free(self._as_parameter_)


def make(free: Callable[[ctypes.c_void_p], None], name: str, *arguments: Any) -> Owned:
    """What a function of the library makes."""

    def call() -> Owned:
        pointer = ctypes.c_void_p()
        c.call(name, ctypes.byref(pointer), *arguments)
        return Owned(pointer, free)

    return interruptible(call)


H = TypeVar("H", bound="_Handle")


def _open_again(snapshots: str, options: Dict[str, Any], plan: Optional[Dict[str, Any]]) -> "Union[Series, Plan]":
    series = open(snapshots, **options)
    return series if plan is None else series.plan(**plan)


def _table(caption: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """For notebooks."""

    def line(kind: str, cells: Sequence[object]) -> str:
        return "<tr>" + "".join(f"<{kind}>{html.escape(str(cell))}</{kind}>" for cell in cells) + "</tr>"

    few = rows if len(rows) <= 20 else [*rows[:10], ["..."] * len(head), *rows[-10:]]
    return f"<table><caption>{html.escape(caption)}</caption>{line('th', head)}{''.join(line('td', r) for r in few)}</table>"


class _Handle:
    """An object of the library, also as a context manager. Copies and pickles are opened again by its path."""

    _made_by: Tuple[str, Dict[str, Any], Optional[Dict[str, Any]]]

    def __init__(self, owned: Owned) -> None:
        if not isinstance(owned, Owned):
            raise TypeError(f"{type(self).__name__} is made by open() or plan(), not from {owned!r}")
        self._owned: Optional[Owned] = owned

    @property
    def _held(self) -> Owned:
        if self._owned is None:
            raise ValueError(f"{type(self).__name__} is closed")
        return self._owned

    def __reduce__(self) -> Any:
        self._held  # raises where it is closed
        return _open_again, self._made_by

    def close(self) -> None:
        """Frees the object, once the calls that use it have ended. Later calls raise ValueError; closing twice does nothing."""
        self._owned = None

    def __enter__(self: H) -> H:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _recognised(owned: Owned, found: c.SeriesInfo) -> Dict[str, Any]:
    sets = (c.info(c.SetInfo, "series_set", owned, i) for i in range(found.n_sets))
    left_out = (c.info(c.LeftOutInfo, "series_left_out", owned, i) for i in range(found.n_left_out))
    named = (({"name": c.string(s.name), "role": c.optional(s.role), "by": c.string(s.by)}, s.margin) for s in sets)
    return {
        "times": c.string(found.times),
        "field": c.optional(found.field),
        "sets": [words if math.isnan(margin) else {**words, "margin": margin} for words, margin in named],
        "left_out": [{"name": c.string(f.file), "reason": c.string(f.reason)} for f in left_out],
    }


class Series(_Handle):
    """The snapshots of one training: see :func:`open`.

    ``recognised`` is what the directory was taken to hold: times, sets of tensors, files left out; as in the
    program's JSON.
    """

    def __init__(self, owned: Owned) -> None:
        super().__init__(owned)
        found = c.info(c.SeriesInfo, "series_info", owned)
        self.layout: str = c.string(found.layout)
        self.unit: str = c.string(found.unit)
        self.n_tensors: int = found.n_tensors
        self.n_averaged: int = found.n_averaged
        self.notes: List[str] = [c.string(found.notes[i]) for i in range(found.n_notes)]
        self.recognised: Dict[str, Any] = _recognised(owned, found)
        infos = (c.info(c.SnapshotInfo, "series_snapshot", owned, k) for k in range(found.n_snapshots))
        self.snapshots: List[Snapshot] = [_record(Snapshot, info) for info in infos]

    def __len__(self) -> int:
        return len(self.snapshots)

    def __iter__(self) -> Iterator[Snapshot]:
        return iter(self.snapshots)

    @overload
    def __getitem__(self, index: int) -> Snapshot: ...
    @overload
    def __getitem__(self, index: slice) -> List[Snapshot]: ...
    def __getitem__(self, index: Union[int, slice]) -> Union[Snapshot, List[Snapshot]]:
        return self.snapshots[index]

    def __repr__(self) -> str:
        tensors = f"{self.n_averaged} of {self.n_tensors} tensors averaged"
        return f"<posthocema.Series: {len(self)} snapshots, layout {self.layout}, {tensors}>"

    def _repr_html_(self) -> str:
        rows = [(k, s.file, f"{s.time:.12g}", s.profile) for k, s in enumerate(self.snapshots)]
        return _table(repr(self)[1:-1], ("", "file", self.unit, "profile"), rows)

    def plan(
        self, sigma_rel: Optional[Numbers] = None, *, profile: Optional[Texts] = None, at: Optional[Numbers] = None,
        rules: Optional[Texts] = None, metric: Optional[Metric] = None, max_error: Optional[float] = None,
        max_ram_bytes: Optional[int] = None, checks: Optional[ChecksRule] = None, schedule: Optional[PathLike] = None, logs: bool = True,
    ) -> "Plan":  # fmt: skip
        """Solves for the weights of averages. Reads some 2000 elements of every snapshot.

        sigma_rel: widths of the averages, also as "0.05,0.1" or "0.05:0.25:0.05"; or profile: other shapes, such as "ema:half-life=2000".
        at: times as in names; default the newest snapshot.
        rules: "RE=SIGMA" and "RE=copy", other widths for tensors whose names match.
        metric: "motion" (default), "walk" or "profile" (the paper's).
        max_error: TooInaccurate where the predicted error is larger.
        checks: where the snapshots do not fit their labels, "warn", or raise InputsError with "error"; "off" compares nothing.
        Default: "error" where raw parameters refute a profile, or where one was assumed that no file says, else "warn".
        schedule: of the learning rate, "cosine", "wsd:decay=10%", ..., or a file of steps and rates.
        logs: give the plan's warnings to the logger.
        Snapshots that were added since the series was opened take part.
        """
        asked = {"sigma_rel": c.numbers("sigma_rel", sigma_rel), "profile": c.several(profile), "rules": c.several(rules)}
        options = c.PlanOptions(
            sigma_rels=asked["sigma_rel"], profiles=asked["profile"], ats=at, rules=asked["rules"], metric=metric,
            max_error=max_error, max_ram_bytes=max_ram_bytes, checks=checks, schedule=schedule,
        )  # fmt: skip
        free = c.LIBRARY.posthoc_ema_plan_free
        plan = Plan(make(free, "plan_make", self._held, ctypes.byref(options)))
        times = dict.fromkeys(t.named_time for t in plan.targets)  # not those of snapshots that come later
        path, given, _ = self._made_by
        plan._made_by = path, given, {
            **asked, "at": list(times), "metric": metric, "max_error": max_error, "max_ram_bytes": max_ram_bytes,
            "checks": checks, "schedule": schedule, "logs": False,
        }  # fmt: skip
        if logs:
            for warning in plan.warnings:
                log.warning("%s", warning)
        return plan

    def checks(self) -> Checks:
        """Whether the snapshots are what their labels say; reads a sample of them."""
        with self.plan(profile="newest", checks="warn") as plan:
            return plan.checks


class Plan(_Handle):
    """Targets, their weights and predicted errors. It stays valid when its series is closed."""

    def __init__(self, owned: Owned) -> None:
        super().__init__(owned)
        found = c.info(c.PlanInfo, "plan_info", owned)
        self.metric: str = c.string(found.metric)
        verdict: Any = c.string(found.verdict)
        suspect = found.suspect if found.suspect < found.n_snapshots else None
        self.checks = Checks(verdict, c.string(found.reason), suspect)
        self.warnings: List[str] = [c.string(found.warnings[i]) for i in range(found.n_warnings)]
        infos = (c.info(c.SnapshotInfo, "plan_snapshot", owned, k) for k in range(found.n_snapshots))
        self.snapshots: List[Snapshot] = [_record(Snapshot, info) for info in infos]
        self.targets: List[Target] = [self._target(owned, j) for j in range(found.n_targets)]
        self._n_tensors: int = found.n_tensors
        self._listings: Dict[Optional[str], Dict[str, TensorInfo]] = {}

    def _target(self, owned: Owned, j: int) -> Target:
        found = c.info(c.TargetInfo, "plan_target", owned, j)
        weights: Any = tuple(found.weights[: len(self.snapshots)])
        try:
            import numpy
        except ImportError:
            pass
        else:
            weights = numpy.array(weights, numpy.float64)
            weights.flags.writeable = False
        return _record(Target, found, index=j, weights=weights)

    def __len__(self) -> int:
        return len(self.targets)

    def __iter__(self) -> Iterator[Target]:
        return iter(self.targets)

    @overload
    def __getitem__(self, which: Which) -> Target: ...
    @overload
    def __getitem__(self, which: slice) -> List[Target]: ...
    def __getitem__(self, which: Union[Which, slice]) -> Union[Target, List[Target]]:
        """A target by its index or its width."""
        if isinstance(which, slice):
            return self.targets[which]
        try:
            return self.targets[self._index(which)]
        except UsageError as error:
            raise IndexError(str(error)) from None

    def __repr__(self) -> str:
        names = [t.profile if math.isnan(t.sigma_rel) else f"{t.sigma_rel:.6g}" for t in self.targets[:4]]
        more = ", ..." if len(self) > 4 else ""
        made = f"{len(self)} targets from {len(self.snapshots)} snapshots, labels {self.checks.verdict}"
        return f"<posthocema.Plan: {made}: {', '.join(names)}{more}>"

    def _repr_html_(self) -> str:
        rows = [(t.index, f"{t.named_time:.12g}", t.profile, f"{t.predicted_error:.2g}", f"{t.profile_error:.2g}") for t in self]
        return _table(repr(self)[1:-1], ("", "time", "profile", "predicted error", "profile error"), rows)

    @property
    def read_bytes(self) -> int:
        """Bytes of the snapshots that the averages are made of: files of weights other than 0."""
        return sum(s.bytes for k, s in enumerate(self.snapshots) if any(target.weights[k] != 0 for target in self.targets))

    def output_bytes(self, dtype: Optional[DType] = None) -> int:
        """Bytes of the tensors of one average; tensors that share storage count once."""
        return sum(t.bytes for t in self.tensors(dtype) if t.same_as == t.index)

    def tensors(self, dtype: Optional[DType] = None) -> List[TensorInfo]:
        """The tensors of every average. dtype: "f32", "f16", "bf16", "same" or None, as for run()."""
        return list(self._listing(dtype).values())

    def _listing(self, dtype: Optional[DType]) -> Dict[str, TensorInfo]:
        name = c.dtype(dtype)
        if name not in self._listings:
            infos = (self._tensor_info(i, name) for i in range(self._n_tensors))
            self._listings[name] = {info.name: info for info in infos}
        return self._listings[name]

    def _tensor_info(self, i: int, dtype: Optional[str]) -> TensorInfo:
        owned = self._held  # holds the name and the shape
        found = c.info(c.TensorInfo, "plan_tensor", owned, i, c.text(dtype))
        name = ctypes.string_at(found.name, found.name_size).decode("utf-8", "surrogateescape")
        shape = tuple(found.shape[: found.rank]) if found.rank else ()
        return _record(TensorInfo, found, index=i, name=name, shape=shape, is_averaged=bool(found.is_averaged))

    # ---- Files ----

    def run(
        self, out: PathLike, *, progress: Union[bool, Callable[[Progress], object], None] = None, into: Optional[PathLike] = None,
        dtype: Optional[DType] = None, overflow: Optional[Overflow] = None, refuse_nan: bool = False,
        shard_bytes: Optional[int] = None, level: Optional[int] = None, replace: bool = False, sync: bool = True,
        verify: bool = False, io: Optional[Io] = None, drop_cache: bool = False, threads: Optional[int] = None,
        input_hash: Optional[Literal["full", "sampled"]] = None,
    ) -> Result:  # fmt: skip
        """Writes the averages. Outputs appear whole under their names or not at all.

        out: a file, whose extension selects the format; a directory; or names such as "sweep/phema-{time}-{sigma}.safetensors".
        progress: True shows it, by tqdm or in one line; or called about ten times a second while snapshots are read. An
        exception in it, Ctrl-C included, stops the run before anything is published, and is raised again. When all tensors
        are summed already, the run completes first.
        The other options are those of ``posthoc-ema synth``. The GIL is released meanwhile. A run or read of the
        same plan waits in another thread; in progress it is refused.
        """
        owned = self._held
        raised: List[BaseException] = []
        told: Set[int] = set()
        signals = _Signals()
        process = os.getpid()

        def report(_: Any, found: Any) -> int:
            try:
                p = found.contents
                if tell and not signals.arrived and p.done_bytes not in told:  # syncing and renaming report the last read again
                    told.add(p.done_bytes)
                    name = ctypes.string_at(p.tensor, p.tensor_size).decode("utf-8", "replace")
                    tell(Progress(p.done_bytes, p.total_bytes, p.elapsed_s, name))
            except BaseException as error:  # it must not be lost in C
                raised.append(error)
            if os.getpid() != process:
                os.write(2, b"posthocema: a process that was forked in a progress callback cannot return from it\n")
                os._exit(70)
            return 1 if raised or signals.arrived else 0

        options = c.RunOptions(
            into=into, dtype=dtype, overflow=overflow, io=io, shard_bytes=shard_bytes, level=level, replaces=replace,
            skips_sync=not sync, drops_cache=drop_cache, verifies=verify, refuses_nan=refuse_nan, threads=threads,
            progress=c.ProgressCallback(report), input_hash=input_hash,
        )  # fmt: skip
        result = c.RunResult()
        with owned.alone():
            with _reporting(progress) as tell, signals:
                status, message = c.status_of("run", owned, c.text(out), ctypes.byref(options), ctypes.byref(result))
            if raised:
                raise raised[0]
            if status:
                raise error_of(status, message)
            paths = [os.fsdecode(c.LIBRARY.posthoc_ema_output(owned, j)) for j in range(len(self))]
        log.info("wrote %s in %.2f s", ", ".join(paths), result.elapsed_s)
        return _record(Result, result, paths=paths)

    # ---- Tensors without a file ----

    def _index(self, which: Which) -> int:
        if isinstance(which, Target):
            which = self.targets.index(which) if which in self.targets else math.nan
        known = ", ".join(f"{t.sigma_rel:.6g}" for t in self.targets)
        try:
            index = c.integer("target", ctypes.c_ssize_t, which)
        except TypeError:
            width = c.real("target", which)
            found = [t.index for t in self.targets if math.isclose(t.sigma_rel, width, rel_tol=1e-6)]
            if len(found) == 1:
                return found[0]
            many = f"; {len(found)} targets have this width, give an index" if found else ""
            raise UsageError(f"target: expected an index or one of the widths {known}, found {which!r}{many}") from None
        if not -len(self) <= index < len(self):
            raise UsageError(f"target: expected an index below {len(self)} or one of the widths {known}, found {index}")
        return index % len(self)

    def _find(self, name: str, dtype: Optional[DType]) -> TensorInfo:
        listing = self._listing(dtype)
        if name not in listing:
            near = difflib.get_close_matches(name, listing, 3) or list(listing)[:3]
            raise KeyError(f"no tensor {name!r} among {len(listing)}, such as {', '.join(near)}")
        return listing[name]

    def _read(
        self, function: str, which: Tuple[int, int], places: Any, sizes: Any, *, dtype: Any, overflow: Any = None, io: Any = None,
        threads: Any = None,
    ) -> None:  # fmt: skip
        """Makes a tensor of a target at an address, or all tensors of several targets at an array of addresses."""
        owned = self._held
        while True:
            signals = _Signals()
            progress = c.ProgressCallback(signals.stops)
            options = c.ReadOptions(dtype=dtype, overflow=overflow, io=io, threads=threads, progress=progress)
            with owned.alone(), signals:
                status, message = c.status_of(function, owned, *which, ctypes.byref(options), places, sizes)
            if status != Cancelled.status:
                break
            # by a signal whose handler raised nothing: the tensors are still wanted
        if status:
            raise error_of(status, message)

    def _states(self, targets: range, kind: str, options: Dict[str, Any]) -> List[Dict[str, Any]]:
        """All tensors of consecutive targets, in one pass over the snapshots."""
        infos = self.tensors(options["dtype"])
        places = (ctypes.c_void_p * (len(targets) * len(infos)))()  # NULL: the same object as another tensor
        sizes = (ctypes.c_size_t * len(infos))(*(info.bytes for info in infos))
        states: List[List[Any]] = [[] for _ in targets]
        for j, made in enumerate(states):
            for info in infos:
                is_tied = info.same_as < info.index and infos[info.same_as].shape == info.shape
                array, address = (made[info.same_as], None) if is_tied else _allocate(info, kind)
                made.append(array)
                places[j * len(infos) + info.index] = address
        self._read("read_all", (targets.start, len(targets)), places, sizes, **options)
        return [{info.name: array for info, array in zip(infos, made)} for made in states]

    @overload
    def tensor(self, name: str, target: Which = 0, *, kind: AsNumpy = "numpy", dtype: Optional[DType] = None, **_: Any) -> Array: ...
    @overload
    def tensor(self, name: str, target: Which = 0, *, kind: AsTorch, dtype: Optional[DType] = None, **_: Any) -> torch.Tensor: ...
    @overload
    def tensor(self, name: str, target: Which = 0, *, kind: AsBuffer, dtype: Optional[DType] = None, **_: Any) -> memoryview: ...
    def tensor(self, name: str, target: Which = 0, *, kind: Any = "numpy", dtype: Optional[DType] = None, **options: Any) -> Any:
        """One tensor of a target, made in memory: the bytes that run() writes.

        target: its index, its width, or a Target. kind: "numpy", "torch", or "buffer" (a memoryview, where neither is
        installed). NumPy has no bfloat16 and no fp8: give dtype="f32", or kind="torch".
        """
        info, index = self._find(name, dtype), self._index(target)
        array, address = _allocate(info, kind)
        self._read("read", (index, info.index), address, info.bytes, dtype=dtype, **options)
        return array

    @overload
    def state_dict(self, target: Which = 0, *, kind: AsNumpy = "numpy", dtype: Optional[DType] = None, **_: Any) -> Dict[str, Array]: ...
    @overload
    def state_dict(self, target: Which = 0, *, kind: AsTorch, dtype: Optional[DType] = None, **_: Any) -> Dict[str, torch.Tensor]: ...
    @overload
    def state_dict(self, target: Which = 0, *, kind: AsBuffer, dtype: Optional[DType] = None, **_: Any) -> Dict[str, memoryview]: ...
    def state_dict(self, target: Which = 0, *, kind: Any = "numpy", dtype: Optional[DType] = None, **options: Any) -> Any:
        """All tensors of a target, without a file. Tied tensors are the same object under both names."""
        index = self._index(target)
        return self._states(range(index, index + 1), kind, {"dtype": dtype, **options})[0]

    @overload
    def state_dicts(self, *, kind: AsNumpy = "numpy", dtype: Optional[DType] = None, **_: Any) -> List[Dict[str, Array]]: ...
    @overload
    def state_dicts(self, *, kind: AsTorch, dtype: Optional[DType] = None, **_: Any) -> List[Dict[str, torch.Tensor]]: ...
    @overload
    def state_dicts(self, *, kind: AsBuffer, dtype: Optional[DType] = None, **_: Any) -> List[Dict[str, memoryview]]: ...
    def state_dicts(self, *, kind: Any = "numpy", dtype: Optional[DType] = None, **options: Any) -> Any:
        """Those of every target, in one pass over the snapshots."""
        return self._states(range(len(self)), kind, {"dtype": dtype, **options})

    @overload
    def iterate(self, target: Which = 0, *, kind: AsNumpy = "numpy", dtype: Optional[DType] = None, **_: Any) -> Iterator[Tuple[str, Array]]: ...
    @overload
    def iterate(self, target: Which = 0, *, kind: AsTorch, dtype: Optional[DType] = None, **_: Any) -> Iterator[Tuple[str, torch.Tensor]]: ...
    @overload
    def iterate(self, target: Which = 0, *, kind: AsBuffer, dtype: Optional[DType] = None, **_: Any) -> Iterator[Tuple[str, memoryview]]: ...
    def iterate(self, target: Which = 0, *, kind: Any = "numpy", dtype: Optional[DType] = None, **options: Any) -> Any:
        """Those of a target, one tensor at a time: memory for one tensor is enough."""
        for info in self.tensors(dtype):
            yield info.name, self.tensor(info.name, target, dtype=dtype, kind=kind, **options)

    # ---- Models ----

    def load_into(self, model: torch.nn.Module, target: Which = 0, *, strict: bool = True) -> None:
        """Copies a target into a torch model, rounded once to the dtype of each of its tensors.

        Names and shapes have to be the same, but for the parts of names that wrappers add, and single integers; tied tensors
        may be in the snapshots under one of their names. strict=False: tensors of the model that the snapshots lack stay what they are.
        """
        from .torch import load_average

        load_average(model, self, target, strict)

    def save_pretrained(
        self, directory: PathLike, target: Which = 0, *, like: PathLike, dtype: Optional[DType] = None, strict: bool = True,
        replace: bool = False,
    ) -> None:  # fmt: skip
        """Writes a target as a folder that from_pretrained() of transformers and diffusers loads.

        like: a folder of the same model, as save_pretrained() writes it. Its files of safetensors get the average, in
        their dtypes or in dtype; configuration and tokenizer are copied. Names that like lacks have to be tied to others.
        strict=False: tensors that the snapshots lack, such as frozen ones, are those of like. The folder appears whole.
        """
        _pretrained.save(self, os.path.normpath(directory), self._index(target), os.fspath(like), c.dtype(dtype), strict, replace)


def _allocate(info: TensorInfo, kind: str) -> Tuple[Any, int]:
    """An array for a tensor, and its address."""
    if kind in ("numpy", "torch"):
        try:
            package = importlib.import_module(kind)
        except ImportError as error:
            raise ImportError(f'{kind} is not installed; kind="buffer" needs nothing') from error
    if kind == "numpy":
        if info.dtype not in _NUMPY:
            raise UsageError(f"tensor '{info.name}': NumPy has no {info.dtype}; give dtype=\"f32\" or kind=\"torch\"")
        array: Array = package.empty(info.shape, package.dtype(_NUMPY[info.dtype]))
        return array, array.ctypes.data
    if kind == "torch":
        dtype = getattr(package, _TORCH.get(info.dtype, ""), None)
        if dtype is None:
            raise UsageError(f"tensor '{info.name}': torch {package.__version__} has no {info.dtype}; give dtype=\"f32\"")
        tensor = package.empty(info.shape, dtype=dtype, device="cpu")
        return tensor, tensor.data_ptr()
    if kind == "buffer":
        data = bytearray(info.bytes)
        address = ctypes.addressof((ctypes.c_char * info.bytes).from_buffer(data))
        view = memoryview(data)
        if info.dtype in _CAST and info.bytes:
            letter: Any = _CAST[info.dtype]
            return (view.cast(letter, info.shape) if info.shape else view.cast(letter)), address
        return view, address
    raise UsageError(f"kind: expected numpy, torch or buffer, found '{kind}'")


def open(  # noqa: A001 - as in gzip and tarfile
    snapshots: PathLike,
    *,
    layout: Optional[str] = None, name_regex: Optional[str] = None, unit: Optional[str] = None, key: Optional[str] = None,
    input_sigma: Optional[Numbers] = None, input_profile: Optional[Texts] = None, update_every: Optional[int] = None,
    from_: Optional[float] = None, to: Optional[float] = None, every: Optional[int] = None, last: Optional[int] = None,
    include: Optional[Texts] = None, exclude: Optional[Texts] = None, allow_global: Optional[Texts] = None,
    reset_at: Union[str, float, Iterable[Union[str, float]], None] = None, time_offset: Optional[float] = None,
    use: Optional[Literal["all", "averages", "raw"]] = None, run: Optional[str] = None,
) -> Series:  # fmt: skip
    """Opens the snapshots of one training: a directory, a manifest or @list. Reads headers, hardly any data.

    The options are those of the program: ``input_sigma`` is ``--input-sigma``, and so on. ``reset_at`` is a time,
    "TIME,counter", or several of them. ``run`` is the id of a run, or its beginning, where the folder has several.
    """
    given = dict(locals())
    path = os.fsdecode(given.pop("snapshots"))
    resets = [t if isinstance(t, str) else repr(c.real("reset_at", t)) for t in c.several(reset_at)]
    options = c.SeriesOptions(
        layout=layout, name_regex=name_regex, unit=unit, key=key, input_sigmas=input_sigma, input_profiles=input_profile,
        update_every=update_every, from_=from_, to=to, every=every, last=last, includes=include, excludes=exclude,
        allow_globals=allow_global, resets=resets, time_offset=time_offset, use=use, run=run,
    )  # fmt: skip
    free = c.LIBRARY.posthoc_ema_series_close
    series = Series(make(free, "series_open", c.text(snapshots), ctypes.byref(options)))
    is_list = path.startswith("@")
    series._made_by = "@" * is_list + os.path.abspath(path[is_list:]), given, None
    for note in series.notes:
        log.info("%s", note)
    return series


def synth(snapshots: PathLike, out: PathLike, sigma_rel: Optional[Numbers] = None, **options: Any) -> Result:
    """Writes averages in one call, as ``posthoc-ema synth``. Takes the options of open(), Series.plan() and Plan.run()."""

    def own(function: Callable[..., Any]) -> Dict[str, Any]:
        names = inspect.signature(function).parameters
        return {name: options.pop(name) for name in list(options) if name in names}

    of_open, of_plan, of_run = own(open), own(Series.plan), own(Plan.run)
    if options:
        raise TypeError(f"synth: neither open(), plan() nor run() has an option {', '.join(options)}")
    with open(snapshots, **of_open) as series, series.plan(sigma_rel, **of_plan) as plan:
        return plan.run(out, **of_run)


def gamma(sigma_rel: SupportsFloat) -> float:
    """The exponent of the power-function average of a relative width in (0, 0.289)."""
    found = ctypes.c_double()
    c.call("gamma", ctypes.byref(found), c.real("sigma_rel", sigma_rel))
    return found.value


def sigma_rel(gamma: SupportsFloat) -> float:
    """The relative width of an exponent above -1: the inverse of :func:`gamma`."""
    width: float = c.LIBRARY.posthoc_ema_sigma_rel(c.real("gamma", gamma))
    if not width > 0:
        raise TargetError(f"expected a gamma above -1, found {gamma}")
    return width


def beta(sigma_rel: SupportsFloat, step: SupportsIndex) -> float:
    """The factor of the update e = beta e + (1 - beta) theta at a step, counted from 1. Update at every step."""
    count = c.integer("step", ctypes.c_uint64, step)
    if count < 1:
        raise UsageError(f"step: expected 1 or more, found {step}")
    factor: float = c.LIBRARY.posthoc_ema_beta(gamma(sigma_rel), count)
    return factor


def weights(
    snapshots: Sequence[Tuple[float, float]], targets: Sequence[Tuple[float, float]], metric: Metric = "walk"
) -> List[List[float]]:
    """Weights without files: [n_snapshots][n_targets]. Each average is (sigma_rel, time)."""

    def profiles(averages: Sequence[Tuple[float, float]]) -> Any:
        return (c.Profile * len(averages))(*(c.Profile(gamma=gamma(s), t=t, update_every=1) for s, t in averages))

    n, m = len(snapshots), len(targets)
    found = (ctypes.c_double * (n * m))()
    c.call("weights", found, profiles(snapshots), n, profiles(targets), m, c.text(metric))
    return [list(found[k * m : (k + 1) * m]) for k in range(n)]
