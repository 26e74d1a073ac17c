# SPDX-License-Identifier: Apache-2.0
"""Snapshots for post-hoc EMA, recorded while a torch model trains."""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import math
import operator
import os
import re
import threading
import types
import uuid
from typing import (
    TYPE_CHECKING, Any, Callable, Dict, Iterable, Iterator, List, Literal, Mapping, Optional, Sequence,
    SupportsFloat, Tuple, Type, Union,
)  # fmt: skip

import torch

from . import _library as c, _shards
from ._files import naming, probe, remove, remove_leftovers, write_files
from ._snapshot_files import Contents, Item, combine, digest, find_snapshots, metadatum, refuse_other, sample
from .averages import Numbers, Plan, Texts, Which, gamma, log
from .design import Design
from .errors import Error, InputsError, OutputError, UsageError

if TYPE_CHECKING:
    from .averages import DType

# Elements that are updated, and held as copies, at a time: few kernels on a device, the cache of a processor.
_CHUNK_ELEMS = {"device": 1 << 24, "processor": 1 << 18}
_FOLD_EVERY = 32  # updates between those that move what residuals hold into the averages
_SNAPSHOT_DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
_AVERAGE_DTYPES = {"f32": torch.float32, "f64": torch.float64}
_COMPLEX = {torch.float32: torch.complex64, torch.float64: torch.complex128}  # averages of complex parameters
_WRAPPERS = {"DistributedDataParallel": "module", "DataParallel": "module", "OptimizedModule": "_orig_mod"}
# Parts that wrappers add to names, which the names of series lack
_WRAPPER_PARTS = re.compile(r"(?<![^.])(module|_orig_mod|_forward_module|_fsdp_wrapped_module|_checkpoint_wrapped_module|_fpw_module)\.")
_HAS_LERP = hasattr(torch, "_foreach_lerp_")
_PROCESS = uuid.uuid4().hex  # tells pickles of other processes

Place = Tuple[Dict[str, Any], str]  # of a tensor: a table of a module, and its key there


def _rank() -> int:
    """Of this process; that which its launcher says where torch.distributed is not initialised."""
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank()
    rank = os.environ.get("RANK", "")
    return int(rank) if rank.isdecimal() else 0


def unwrap(model: torch.nn.Module) -> torch.nn.Module:
    """The model inside of DistributedDataParallel and torch.compile."""
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"model: expected a torch module, found {type(model).__name__}")
    while type(model).__name__ in _WRAPPERS:
        model = getattr(model, _WRAPPERS[type(model).__name__])
    return model


def inner_optimizer(optimizer: Any) -> Tuple[Any, bool]:
    """The optimizer inside of that of accelerate, and whether the parameters change only after its step."""
    while type(optimizer).__module__.startswith("accelerate.") and hasattr(optimizer, "optimizer"):
        optimizer = optimizer.optimizer
    return optimizer, type(optimizer).__module__.startswith("deepspeed.")


def _find_module(model: torch.nn.Module, name: Optional[str]) -> torch.nn.Module:
    """The submodule of this name, such as "net" or "encoder.blocks"; None: the model itself."""
    try:
        return unwrap(unwrap(model).get_submodule(name or ""))
    except AttributeError:
        known = ", ".join(name for name, _ in unwrap(model).named_children()) or "no modules"
        raise InputsError(f"module: the model has no '{name}', it has {known}") from None


def _entries(model: torch.nn.Module, loads: bool = False) -> Dict[str, torch.Tensor]:
    """The tensors of state_dict(), under the names that they have without torch.compile. loads: refuses what cannot be written into."""
    states = [model.state_dict(keep_vars=True) for _ in range(1 + loads)]  # copies that are made for it differ in two of them
    entries, again = ({n.replace("_orig_mod.", ""): t for n, t in s.items() if isinstance(t, torch.Tensor)} for s in (states[0], states[-1]))
    for name, tensor in entries.items() if loads else ():
        if (tensor.is_floating_point() or tensor.is_complex()) and tensor.numel() and _memory(tensor) != _memory(again[name]):
            raise InputsError(f"'{name}': state_dict() makes a copy, into which no average can be loaded")
    return entries


def load_average(model: torch.nn.Module, plan: Plan, target: Which = 0, strict: bool = True) -> None:
    """See Plan.load_into."""
    entries = _entries(unwrap(model), loads=True)
    bare = {_WRAPPER_PARTS.sub("", name): tensor for name, tensor in entries.items()}
    pairs = []
    firsts: Dict[Any, str] = {}  # of the names of a tensor
    for info in plan.tensors():
        found = entries.get(info.name, bare.get(_WRAPPER_PARTS.sub("", info.name)))
        if found is None and not info.shape and info.dtype[0] in "IU":
            continue  # a counter, such as n_averaged of AveragedModel
        if found is None or found.shape != info.shape:
            what = "is not in the model" if found is None else f"is {list(info.shape)}, in the model {list(found.shape)}"
            raise InputsError(f"'{info.name}': {what}; the snapshots are not of this model")
        if _shards.is_sharded(found) or found.is_meta:
            what = "has no data (meta); load the average after to_empty()" if found.is_meta else "is sharded; load it before fully_shard"
            raise InputsError(f"'{info.name}': {what}")
        kind = found.is_complex() if info.dtype[0] == "C" else found.is_floating_point()
        if info.is_averaged and not kind:  # torch would cut it to integers, or to the real part
            raise InputsError(f"'{info.name}': is {info.dtype}, in the model {found.dtype}")
        first, wide = firsts.setdefault(_memory(found), info.name), "f32" if info.is_averaged else None
        if first != info.name and not torch.equal(*(plan.tensor(n, target, dtype=wide, kind="torch") for n in (first, info.name))):
            raise InputsError(f"'{info.name}' and '{first}': differ in the snapshots, but share a tensor in the model")
        pairs.append((info, found))
    loaded = {id(tensor) for _, tensor in pairs}
    missing = [n for n, t in entries.items() if id(t) not in loaded and (t.dim() or t.is_floating_point() or t.is_complex())]
    if strict and missing:
        raise InputsError(f"'{missing[0]}': is in the model, but not in the snapshots; strict=False keeps it")
    names: Dict[Any, Any] = {dtype: name for name, dtype in _SNAPSHOT_DTYPES.items()}
    with torch.no_grad():
        for info, tensor in pairs:
            dtype = names.get(tensor.dtype, "f32") if info.is_averaged else None
            tensor.copy_(plan.tensor(info.name, target, dtype=dtype, kind="torch"))
    torch.clear_autocast_cache()  # has casts of what they were


def _find_places(model: torch.nn.Module, entries: Mapping[str, torch.Tensor]) -> Optional[Dict[str, Place]]:
    """Where the tensors of state_dict() lie in the modules. None: a module has a state of its own making."""
    places: Dict[str, Place] = {}
    for prefix, module in model.named_modules(remove_duplicate=False):
        for table in (module._parameters, module._buffers):
            for key, tensor in table.items():
                name = f"{prefix}.{key}" if prefix else key
                places[name.replace("_orig_mod.", "")] = (table, key)
    found = {name: places[name] for name in entries if name in places}
    is_same = all(found[n][0][found[n][1]] is t for n, t in entries.items() if n in found)
    return found if is_same and len(found) == len(entries) else None


def _cut(tensors: Sequence[torch.Tensor], most: int) -> List[slice]:
    """Consecutive tensors of about so many elements."""
    chunks = [end // most for end in itertools.accumulate(t.numel() for t in tensors)]  # of each tensor
    return [slice(chunks.index(c), chunks.index(c) + chunks.count(c)) for c in dict.fromkeys(chunks)]


def _lerp(held: List[torch.Tensor], to: List[torch.Tensor], weight: float) -> None:
    """held + weight (to - held): what does not differ stays as it is, to the last bit."""
    if _HAS_LERP:
        torch._foreach_lerp_(held, to, weight)
    else:
        torch._foreach_add_(held, torch._foreach_sub(to, held), alpha=weight)


def _fold(averages: List[torch.Tensor], residuals: List[torch.Tensor]) -> None:
    """Moves into each average what it can hold of its residual; their sum stays."""
    moved = torch._foreach_add(averages, residuals)
    torch._foreach_sub_(moved, averages)
    torch._foreach_add_(averages, moved)
    torch._foreach_sub_(residuals, moved)


def _describe(entries: Mapping[str, torch.Tensor]) -> Dict[str, str]:
    """The tensors of a model in words, which are compared."""
    kinds = {}
    for name, tensor in entries.items():
        is_averaged = tensor.is_floating_point() or tensor.is_complex()
        shape = f"{list(tensor.shape)}{', complex' if tensor.is_complex() else ''}"
        words = f"{shape}{', sharded' if _shards.is_sharded(tensor) else ''}{', without data (meta)' if tensor.is_meta else ''}"
        kinds[name] = words if is_averaged else "copied"
    return kinds


def _compare(found: Mapping[str, str], expected: Mapping[str, str]) -> str:
    """How the tensors of a model differ from those that it had; empty where they do not."""
    parts = []
    for what, names in (
        ("added: ", [f"'{n}'" for n in found if n not in expected]),
        ("missing: ", [f"'{n}'" for n in expected if n not in found]),
        ("", [f"'{n}' is {found[n]}, was {e}" for n, e in expected.items() if n in found and found[n] != e]),
    ):
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        parts += [what + ", ".join(names[:3]) + more] if names else []
    return "; ".join(parts)


def _memory(tensor: torch.Tensor) -> Any:
    """Where a tensor lies, or the part of this process: equal for names that share it."""
    part = _shards.local(tensor)
    return (part.device, part.data_ptr(), part.shape, part.stride(), part.dtype) if part.numel() else id(tensor)


def _is_frozen(tensor: torch.Tensor) -> bool:
    return isinstance(tensor, torch.nn.Parameter) and not tensor.requires_grad


def _expressions(name: str, values: Optional[Texts]) -> "List[re.Pattern[str]]":
    try:
        return [re.compile(value) for value in c.several(values)]
    except (re.error, TypeError) as error:
        raise UsageError(f"{name}: expected regular expressions, found {values!r}: {error}") from None


def _whole_number(name: str, value: Any, least: int, kind: Type[Error] = UsageError) -> int:
    try:
        whole = operator.index(int(value) if isinstance(value, float) and value.is_integer() else value)
    except TypeError:
        whole = least - 1
    if whole < least or isinstance(value, bool):
        raise kind(f"{name}: expected a whole number from {least}, found {value!r}")
    return whole


def _find_dtype(option: str, value: Any, known: Mapping[str, torch.dtype], why: str = "") -> torch.dtype:
    name = c.dtype(value) or ""
    if name not in known:
        expected = " or ".join(str(dtype)[6:] for dtype in known.values())
        raise UsageError(f"{option}: expected {expected}, found {value}{why}")
    return known[name]


class _Options:
    """What a recorder is to do. Options with which no snapshot could be right, or none would ever be written, are refused."""

    def __init__(
        self,
        widths: Optional[Numbers], design: "Optional[Union[Design, str, os.PathLike[str]]]" = None,
        every: Optional[int] = None, times: Optional[Numbers] = None, update_every: int = 1, unit: Literal["steps"] = "steps",
        dtype: Optional[DType] = None, average_dtype: Union[DType, Literal["f64", "float64"]] = "f32",
        on_error: Literal["raise", "warn"] = "raise",
        include: Optional[Texts] = None, exclude: Optional[Texts] = None, trainable_only: bool = False, frozen_once: bool = False,
    ) -> None:  # fmt: skip
        steps: Sequence[Any] = c.numbers("times", times)
        counted: str = unit
        if design is not None:
            if widths is not None or every is not None or steps:
                raise UsageError("design: has the widths and times; found widths, every or times beside it")
            plan = design if isinstance(design, Design) else Design.load(design)
            widths, steps, counted = plan.widths, plan.times, plan.unit
            dtype = dtype or _SNAPSHOT_DTYPES[plan.dtype]
        if counted != "steps":
            raise UsageError(f"unit: expected times in steps, which the recorder counts, found {counted}")
        if every is None and not steps:
            raise UsageError("every, times: expected one of them; every=0 where only save() and close() write")
        if every and steps:
            raise UsageError("times: expected these or every")
        if on_error not in ("raise", "warn"):
            raise UsageError(f"on_error: expected 'raise' or 'warn', found {on_error!r}")
        if trainable_only and frozen_once:
            raise UsageError("trainable_only: leaves out the parameters that frozen_once stores; expected one of them")
        self.frozen_once, self._trainable_only = frozen_once, trainable_only
        self._includes, self._excludes = _expressions("include", include), _expressions("exclude", exclude)
        self.widths = (0.05, 0.10) if widths is None else tuple(c.numbers("widths", widths))
        if not self.widths or len(set(self.widths)) != len(self.widths):
            raise UsageError(f"widths: expected different widths, found {self.widths}")
        self._gammas = [gamma(width) for width in self.widths]  # refuses what does not exist
        self.every = _whole_number("every", every or 0, 0)
        self.times = frozenset(_whole_number("times", time, 1) for time in steps)
        self.update_every = _whole_number("update_every", update_every, 1)
        self.dtype = _find_dtype("dtype", dtype or "f32", _SNAPSHOT_DTYPES)
        self.average_dtype = _find_dtype("average_dtype", average_dtype, _AVERAGE_DTYPES, ": averages in 16 bits stop moving")
        self.on_error, self.unit = on_error, unit

    def _chooses(self, name: str, tensor: torch.Tensor) -> bool:
        is_included = not self._includes or any(e.search(name) for e in self._includes)
        is_left_out = (self._trainable_only and _is_frozen(tensor)) or any(e.search(name) for e in self._excludes)
        return is_included and not is_left_out


def _find_width(name: str, widths: Sequence[float], width: Optional[SupportsFloat]) -> int:
    wanted = widths[0] if width is None else c.real(name, width)
    for k, known in enumerate(widths):
        if math.isclose(known, wanted, rel_tol=1e-6):
            return k
    raise UsageError(f"{name}: expected one of the widths {tuple(widths)}, found {wanted}")


class Recorder(_Options):
    """Keeps power-function averages of a model, and writes snapshots of them.

    model: every floating-point or complex entry of its state_dict() is averaged, others are copied when a snapshot is
    written. module: the name of the submodule that is the model. include, exclude: regular expressions, or lists of
    them, that choose entries by parts of their names; trainable_only: leaves out parameters without requires_grad.
    What is left out is neither averaged nor written. frozen_once: parameters without requires_grad have no averages, and are
    written once, into the file PREFIX-frozen.safetensors, which snapshots name. Complex entries are written as complex64. Names
    that share a tensor (tied parameters) share an average. The wrappers of DDP and torch.compile are looked through.
    widths: sigma_rel of each average, default (0.05, 0.10); or design: a Design, or the file of one, which also has
    times, dtype and unit. dir: of the snapshots; without it, and with every=0, averages are kept in memory alone.
    every: steps between snapshots, or times: the steps of snapshots; every=0: only save() and close() write.
    update_every: steps between updates. The factor is exact for the steps between, so that widths stay right. unit: of times; steps alone.
    dtype: of snapshots, float32 (default), float16 or bfloat16. average_dtype: of the averages, float32 (default) or
    float64; averages in 16 bits stop moving.
    compensate: float32 averages have residuals in float32, so that they move however long the training is. False saves
    their memory, half of that of the averages; beyond some 10 000 steps such averages stop moving.
    device: of the averages; default: that of each parameter.
    on_error: "raise", or "warn": a snapshot that cannot be written is a warning, and the training continues.
    replace: snapshots of other runs in dir may be replaced; without it they are refused.
    background: snapshots are copied to memory of the host, pinned where parameters are on a GPU, and written by a thread
    while training goes on. The memory is that of the files of one step: the next save waits for them. A failure is
    raised by the next step, save, wait(), state_dict() or close().

    Call step() after every step of the optimizer, or attach() the recorder to it; close() saves the end. In ``with
    Recorder(...) as recorder`` it is closed at the end of the block; an exception in the block saves nothing.
    Where there are several processes only rank 0 keeps averages and writes. Of sharded parameters (FSDP2) each process
    keeps its shards, every process has to call step(), and a snapshot is a distributed checkpoint.
    """

    def __init__(
        self,
        model: torch.nn.Module, widths: Optional[Numbers] = None, *,
        design: "Optional[Union[Design, str, os.PathLike[str]]]" = None, dir: "Optional[Union[str, os.PathLike[str]]]" = None,
        every: Optional[int] = None, times: Optional[Numbers] = None, update_every: int = 1, unit: Literal["steps"] = "steps",
        dtype: Optional[DType] = None, average_dtype: Union[DType, Literal["f64", "float64"]] = "f32", compensate: bool = True,
        device: "Optional[Union[str, torch.device]]" = None, prefix: str = "snapshot", replace: bool = False,
        on_error: Literal["raise", "warn"] = "raise", background: bool = False, module: Optional[str] = None,
        include: Optional[Texts] = None, exclude: Optional[Texts] = None, trainable_only: bool = False, frozen_once: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(
            widths, design, every, times, update_every, unit, dtype, average_dtype, on_error, include, exclude, trainable_only, frozen_once
        )
        self._root, self._module, self.dir = model, module, "" if dir is None else os.fspath(dir)
        if not self.dir and (self.every or self.times):
            raise UsageError("dir: expected a directory for the snapshots, which only every=0 goes without")
        if os.path.basename(prefix) != prefix:
            raise UsageError(f"prefix: expected the beginning of a name, without directories, found '{prefix}'")
        self.prefix, self.replace, self.background = prefix, replace, background
        self.n_steps = self._n_updated = self._n_lent = 0  # lent: in blocks of copy_to the model has an average
        self.run_id = uuid.uuid4().hex
        self._device, self.is_writer = device, _rank() == 0
        self.compensate = compensate and self.average_dtype == torch.float32
        self._kinds: Dict[str, str] = {}  # the tensors that are recorded, by name
        self._first: Dict[str, str] = {}  # the first name of each averaged tensor
        self._names: List[str] = []  # these first names
        self._frozen: Dict[str, torch.Tensor] = {}  # those that are written once
        self._seals: Dict[str, Tuple[str, Any, Any]] = {}  # their digests, and what shows that they may have changed since
        self._averages: List[List[torch.Tensor]] = [[] for _ in self.widths]  # in the same order, for each width
        self._residuals: List[List[torch.Tensor]] = [[] for _ in self.widths]  # to be added to them, or none
        self._checked_run = ""  # whose directory was looked through
        self._continued_at: float = math.inf  # step of a loaded state, until snapshots that it left behind are removed
        self._saved: Tuple[int, List[str]] = (0, [])  # step and paths of the last snapshots
        self._thread: Optional[threading.Thread] = None  # that writes
        self._writing: Tuple[int, List[str]] = (0, [])  # step and paths of what it writes
        self._failure: Optional[BaseException] = None  # of the thread
        self._memory: List[Dict[str, torch.Tensor]] = [{} for _ in self.widths]  # what it writes
        self._detach: Optional[Callable[[], None]] = None
        self._is_closed = self._has_warned = False
        self._start()

    @property
    def model(self) -> torch.nn.Module:
        """What is recorded. With the option module the submodule that has its name now."""
        return _find_module(self._root, self._module)

    def _start(self) -> None:
        for name, module in self.model.named_modules():
            if type(module).__name__ == "FullyShardedDataParallel":
                raise InputsError(f"'{name}': FullyShardedDataParallel has no tensors to average; use fully_shard")
        if any(hasattr(parameter, "ds_id") for parameter in self.model.parameters()):
            raise InputsError("DeepSpeed's ZeRO stage 3 has no whole parameters to average; use stage 2, or fully_shard")
        entries = self._entries(self.model)
        if not entries and _entries(self.model):
            raise InputsError("include, exclude, trainable_only: they choose no tensor of the model")
        self.is_sharded = any(_shards.is_sharded(t) for t in entries.values())
        self._frozen = {n: t for n, t in entries.items() if self.frozen_once and _is_frozen(t)}
        floats = {n: t for n, t in entries.items() if (t.is_floating_point() or t.is_complex()) and n not in self._frozen}
        self._keeps = self.is_writer or self.is_sharded
        if self.is_sharded and self.background:
            raise InputsError("background: sharded parameters are written by all processes together, not beside the training")
        sizes = [sum(t.numel() for t in floats.values() if _is_frozen(t) or is_all) for is_all in (False, True)]
        if self.is_writer and not self.is_sharded and 2 * sizes[0] > sizes[1]:
            log.warning("%.2g of %.2g elements are frozen, but averaged and in every snapshot; frozen_once=True stores them once", *sizes)
        if self.is_sharded and self._frozen:
            raise InputsError("frozen_once: sharded parameters are in every snapshot; give trainable_only=True to leave them out")
        if self._frozen and not floats:
            raise InputsError("frozen_once: every parameter is frozen, so there is nothing to average")
        self.run_id = _shards.share(self.run_id) if self.is_sharded else self.run_id
        self._kinds = _describe(entries)
        for name in (name for name, tensor in entries.items() if tensor.is_meta):
            raise InputsError(f"'{name}': has no data (meta); make the recorder after to_empty()")
        with self._together():
            if self.is_writer and self.dir:
                probe(self.dir)
        seen: Dict[Any, str] = {}
        for name, tensor in floats.items():
            self._first[name] = seen.setdefault(_memory(tensor), name)
        self._names = [name for name, first in self._first.items() if name == first]
        self._sharded = [_shards.is_sharded(floats[name]) for name in self._names]
        self._find(entries)
        if self._keeps:
            for averages in self._averages:
                averages += [self._copy(_shards.local(floats[name])) for name in self._names]
        if self.compensate:
            self._residuals = [[torch.zeros_like(average) for average in averages] for averages in self._averages]
        self._note_kinds()

    @torch.inference_mode(False)
    @torch.no_grad()
    def _note_kinds(self) -> None:
        for kept in (*self._averages, *self._residuals):  # what inference mode has made could only be updated there
            kept[:] = [part.clone() if part.is_inference() else part for part in kept]
        most = _CHUNK_ELEMS["device" if any(t.is_cuda for t in self._averages[0]) else "processor"]
        large = [max(most * len(t) // t.numel(), 1) if t.numel() > most else 0 for t in self._averages[0]]
        self._rows = [[len(p) for p in t.split(n)] if n else [] for t, n in zip(self._averages[0], large)]
        self._shapes = [t.shape for t in self._averages[0]]
        self._held, self._rest = ([self._split(t) for t in kept] for kept in (self._averages, self._residuals))
        self._parts = _cut(self._held[0], most)
        self._devices = [piece.get_device() for piece in self._held[0]]  # numbers, quick to compare
        self._dtypes = [piece.dtype for piece in self._held[0]]

    def __getstate__(self) -> Dict[str, Any]:
        self.wait()
        return {**self.__dict__, "_detach": None, "_process": _PROCESS}  # a copy is attached to no optimizer

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__dict__.update(state)
        if state["_process"] != _PROCESS:  # a run that continues, as by load_state_dict()
            self._continued_at, self._checked_run = self.n_steps, ""
        self._note_kinds()  # pickles make pieces of averages tensors of their own

    def _split(self, tensors: List[torch.Tensor]) -> List[torch.Tensor]:
        """With large ones in pieces of whole rows."""
        return [piece for t, rows in zip(tensors, self._rows) for piece in (t.split(rows) if rows else (t,))]

    def to(self, device: "Union[str, torch.device]") -> "Recorder":
        """Moves the averages to a device; parameters on another one are copied for a step."""
        if self.is_sharded:
            raise UsageError("to: averages of sharded parameters are where their parameters are")
        for kept in (*self._averages, *self._residuals):
            kept[:] = [part.to(torch.device(device)) for part in kept]
        self._note_kinds()
        return self

    def _entries(self, model: torch.nn.Module, loads: bool = False) -> Dict[str, torch.Tensor]:
        """The chosen tensors of a model: later freezing takes none away, and those that thaw are new ones."""
        entries = _entries(unwrap(model), loads).items()
        return {name: t for name, t in entries if name in self._kinds or self._chooses(name, t)}

    def _find(self, entries: Mapping[str, torch.Tensor]) -> None:
        """Notes where the tensors lie, and what changes when modules or tensors come or go."""
        self._followed = self.model
        places = _find_places(self._followed, entries)
        self._places = None if places is None else [places[name] for name in self._names]
        modules = list(self._followed.modules())
        self._children = [module._modules for module in modules]
        self._tables = [table for module in modules for table in (module._parameters, module._buffers)]
        self._modules = list(itertools.chain.from_iterable(map(dict.values, self._children)))
        self._n_tensors = sum(map(len, self._tables))

    def _check_model(self, entries: Mapping[str, torch.Tensor]) -> None:
        """Refuses a model that has got, lost or changed tensors since the recorder was made, or has untied some."""
        difference = _compare(_describe(entries), self._kinds)
        for n, first in () if difference else self._first.items():
            if n != first and _memory(entries[n]) != _memory(entries[first]):
                difference = f"'{n}' and '{first}' shared a tensor"
        if difference:
            raise InputsError(f"the model has changed since the recorder was made: {difference}")
        self._frozen.update((name, entries[name]) for name in self._frozen)

    def _check_frozen(self, reads: bool = False) -> None:
        """Refuses frozen parameters that train, or have changed. Those that may have are read again; of the others reads some."""
        is_first = not self._seals
        for name, tensor in self._frozen.items():
            mark = (tensor.requires_grad, tensor.data_ptr(), 0 if tensor.is_inference() else tensor._version)
            before, old_mark, some = self._seals.get(name, ("", None, None))
            if mark == old_mark and (not reads or (some == sample(tensor) and not tensor.is_inference())):
                continue
            found = digest(tensor)
            if tensor.requires_grad or before not in ("", found):
                raise InputsError(f"'{name}': was frozen, and trains or has changed since; make the recorder without frozen_once")
            self._seals[name] = found, mark, sample(tensor)
        if is_first and self.dir:
            self._frozen_file()  # refuses one of another training now

    def _frozen_metadata(self) -> Dict[str, str]:
        """What snapshots say of the frozen parameters."""
        said = {"posthoc_ema.frozen_file": f"{self.prefix}-frozen.safetensors"} if self._frozen else {}
        return {**said, "posthoc_ema.frozen_digest": combine({n: seal for n, (seal, *_) in self._seals.items()})} if said else {}

    def _frozen_file(self) -> Dict[str, Contents]:
        """What is to be written before snapshots: the frozen parameters, unless the directory has them."""
        said = self._frozen_metadata()
        path = os.path.join(self.dir, said.pop("posthoc_ema.frozen_file", ""))
        if not said or metadatum(path, "frozen_digest") in said.values():
            return {}
        if os.path.lexists(path) and not self.replace:
            raise OutputError(f"{path}: has other tensors than the frozen ones of this model; load those, give another dir, or replace=True")
        tensors = {name: Item(tensor, tensor.dtype) for name, tensor in self._frozen.items()}
        return {path: Contents(tensors, {**said, "posthoc_ema.run": self.run_id}, lambda name: None)}

    def _together(self) -> "contextlib.AbstractContextManager[None]":
        """What the writer does."""
        return _shards.together() if self.is_sharded else contextlib.nullcontext()

    def _check_folder(self, run: str) -> None:
        """Refuses a directory that has snapshots of another run."""
        with self._together():
            if self.is_writer and self.dir:
                with naming(self.dir):
                    for _, path in () if self.replace else find_snapshots(self.dir, self.prefix):
                        refuse_other(path, run)
                    remove_leftovers(self.dir, run)
        self._checked_run = run

    def _replaces(self, path: str) -> bool:
        """Whether a snapshot is there, of this run; refuses that of another."""
        if os.path.lexists(path) and not self.replace:
            refuse_other(path, self.run_id)
        return os.path.lexists(path)

    def _copy(self, tensor: torch.Tensor) -> torch.Tensor:
        dtype = _COMPLEX[self.average_dtype] if tensor.is_complex() else self.average_dtype
        return tensor.detach().to(self._device or tensor.device, dtype, copy=True)

    # ---- Training ----

    def step(self) -> None:
        """Counts a step, updates every average, and writes snapshots when they are due."""
        if self._detach:
            raise UsageError("step: the recorder is attached to an optimizer, whose steps count")
        self._step()

    def _step(self) -> None:
        if self._is_closed:
            raise UsageError("step: the recorder is closed")
        if self._n_lent:
            raise UsageError("step: the model has an average (copy_to), which would be averaged again")
        if self._checked_run != self.run_id:
            self._check_folder(self.run_id)
        now = self.n_steps + 1
        if now % self.update_every == 0:
            self._update(now)
        self.n_steps = now
        if now in self.times or (self.every and now % self.every == 0):
            self.save()
        elif self._failure is not None:
            self.wait()

    def attach(self, optimizer: Any) -> Callable[[], None]:
        """Calls step() after every step that the optimizer makes; those that a gradient scaler skips do not count.

        Returns a function that ends this, as close() does. An optimizer that accelerate has prepared is looked through.
        """
        if self._detach:
            raise UsageError("attach: the recorder is attached already, each step would count twice")
        optimizer, is_late = inner_optimizer(optimizer)
        if is_late:
            raise UsageError("attach: DeepSpeed changes the parameters after its optimizer's step; call step() after engine.step()")

        def after(*_: Any) -> None:
            skipped = getattr(optimizer, "found_inf", None)  # set by the scaler while a fused optimizer steps
            if self._detach is detach and (skipped is None or float(skipped) == 0):
                self._step()

        if hasattr(optimizer, "register_step_post_hook"):
            remove = optimizer.register_step_post_hook(after).remove
        else:  # torch before 2.0
            plain = optimizer.step

            @functools.wraps(plain)
            def step(_: Any, *arguments: Any, **options: Any) -> Any:
                result = plain(*arguments, **options)
                after()
                return result

            method = optimizer.step = types.MethodType(step, optimizer)  # as schedulers expect

            def remove() -> None:
                if optimizer.step is method:  # else it stays below that of another recorder
                    optimizer.step = plain

        def detach() -> None:
            if self._detach is detach:
                self._detach = None
                remove()

        self._detach = detach
        return detach

    def _live(self) -> List[torch.Tensor]:
        """The parameters and buffers as they are now, or the shards of this process."""
        modules = list(itertools.chain.from_iterable(map(dict.values, self._children)))
        if self.model is not self._followed or modules != self._modules or sum(map(len, self._tables)) != self._n_tensors:
            entries = self._entries(self.model)
            self._check_model(entries)
            self._find(entries)
        tensors = [] if self._places is None else [table[key] for table, key in self._places]
        # After an evaluation fully_shard may leave whole parameters in the modules; state_dict() shards them again.
        if self._places is None or (self.is_sharded and [_shards.is_sharded(t) for t in tensors] != self._sharded):
            entries = self._entries(self.model)
            self._check_model(entries)
            tensors = [entries[name] for name in self._names]
        if self.is_sharded:
            tensors = [_shards.local(tensor) for tensor in tensors]
        return tensors

    @torch.no_grad()
    def _update(self, now: int) -> None:
        """Moves the averages from the step of their last update to that which is now. What is refused has moved none."""
        steps = now - self._n_updated
        if not self._keeps or not steps:
            self._n_updated = now
            return
        if self._n_lent:
            raise UsageError("save: the model has an average (copy_to), which would be averaged again")
        self._check_frozen()
        decay = math.log1p(-steps / now) if self._n_updated else -math.inf
        weights = [-math.expm1((exponent + 1) * decay) for exponent in self._gammas]
        whole = self._live()
        if [t.shape for t in whole] != self._shapes:  # some of which torch would broadcast
            self._check_model(self._entries(self.model))  # says which tensor has another shape
            raise InputsError("the parts of sharded parameters have other shapes than when the recorder was made")
        live = self._split(whole)
        is_alike = [t.dtype for t in live] == self._dtypes and [t.get_device() for t in live] == self._devices
        self.n_steps = now
        for part in self._parts if self.compensate or not is_alike else [slice(None)]:
            self._update_part(part, live[part], weights, is_alike)
        self._n_updated = now

    def _update_part(self, part: slice, live: List[torch.Tensor], weights: List[float], is_alike: bool) -> None:
        if not is_alike:
            # Asynchronously between GPUs alone: the processor would read or change a tensor before the copy is made.
            live = [t.to(e.device, e.dtype, non_blocking=t.is_cuda and e.is_cuda) for t, e in zip(live, self._held[0][part])]
        for averages, residuals, weight in zip(self._held, self._rest, weights):
            held, rest = averages[part], residuals[part]
            if weight == 1:
                for average, value in zip(held, live):
                    average.copy_(value)
                for residual in rest:
                    residual.zero_()
            elif rest:  # held + rest moves by weight (live - held - rest), of which rest can hold the last digits
                _lerp(rest, torch._foreach_sub(live, held), weight)
                if self.n_steps // self.update_every % _FOLD_EVERY == 0:
                    _fold(held, rest)
            else:
                _lerp(held, live, weight)

    # ---- Snapshots ----

    def path(self, width: float) -> str:
        """Of the snapshot of this step."""
        digits = f"{width:.3f}" if float(f"{width:.3f}") == width else repr(width)
        return os.path.join(self.dir, f"{self.prefix}-{self.n_steps:07d}-{digits}{'' if self.is_sharded else '.safetensors'}")

    @torch.no_grad()
    def save(self) -> List[str]:
        """Writes a snapshot of each width, once for a step. Each appears when all of its data are on disk.

        Snapshots of this run at this step are replaced, those of other runs refused.
        """
        if not self.n_steps or not self.dir:
            raise UsageError("save: no step was recorded yet" if self.dir else "save: the recorder was made without dir")
        self._update(self.n_steps)
        if self._thread and self._writing[0] == self.n_steps:
            return list(self._writing[1])
        self.wait()
        if self.is_saved:
            return list(self._saved[1])
        entries = self._entries(self.model)
        self._check_model(entries)
        self._check_frozen(reads=True)
        contents = {self.path(width): self._contents(k, entries) for k, width in enumerate(self.widths)}
        try:
            self._write(contents)
        except (OSError, Error) as error:
            if self.on_error != "warn":
                raise
            log.warning("step %d: no snapshot was written: %s", self.n_steps, error)
            return []
        return list(contents)

    def wait(self) -> None:
        """Ends when no snapshot is being written beside the training. Raises what has failed there."""
        if self._thread:
            self._thread.join()
            self._thread = None
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    @property
    def is_saved(self) -> bool:
        """Whether the snapshots of this step are written. On processes that write none: True."""
        return self._saved[0] == self.n_steps or not self._keeps

    def _write(self, contents: Mapping[str, Tuple[Dict[str, Item], Dict[str, str]]]) -> None:
        if self._checked_run != self.run_id:
            self._check_folder(self.run_id)
        with self._together():
            if self.is_writer:
                with naming(self.dir):
                    os.makedirs(self.dir, exist_ok=True)
                for path in contents:
                    self._replaces(path)
        self._writing = (self.n_steps, list(contents))
        if self.is_sharded:
            for width, (tensors, _) in zip(self.widths, contents.values()):
                for name, item in tensors.items():
                    if not torch.isfinite(_shards.local_value(item)).all():
                        self._warn_of_nan(width, name)
            _shards.write_all(contents, self.run_id)
            self._note_saved()
            return
        files = self._frozen_file()  # the first to appear
        for width, (path, content) in zip(self.widths, contents.items()):
            files[path] = Contents(*content, functools.partial(self._warn_of_nan, width))
        if self.background:
            for memory, held in zip([{}, *self._memory][-len(files) :], files.values()):
                held.hold(memory)
            self._thread = threading.Thread(target=self._write_beside, args=(files,), name="posthocema")
            self._thread.start()
        else:
            self._write_files(files)

    def _write_files(self, files: Mapping[str, Contents]) -> None:
        write_files({path: content.write for path, content in files.items()}, run=self.run_id, replaces=self._replaces)
        self._note_saved()
        log.info("step %d: wrote %s", self._saved[0], ", ".join(files))

    def _note_saved(self) -> None:
        """Removes later snapshots that the run has written before it continued from an earlier step: they are of another past."""
        self._saved, at = self._writing, self._continued_at
        self._continued_at = math.inf
        for step, path in find_snapshots(self.dir, self.prefix) if at < math.inf and self.is_writer else ():
            if step > at and step != self._saved[0] and metadatum(path, "run") == self.run_id:
                remove(path)
                log.warning("step %d: removed %s, which the run had written before it continued from step %d", self._saved[0], path, at)

    def _write_beside(self, files: Mapping[str, Contents]) -> None:
        try:
            self._write_files(files)
        except BaseException as error:
            log.warning("step %d: no snapshot was written: %s", self._writing[0], error)
            if self.on_error != "warn" or not isinstance(error, (OSError, Error)):
                self._failure = error  # raised in the thread that trains

    def _warn_of_nan(self, width: float, name: str) -> None:
        """Says once which tensor of the averages is no longer a number."""
        if not self._has_warned and name in self._first:
            self._has_warned = True
            what = "has NaN or infinite elements in the average"
            log.warning("step %d: '%s' %s %s, as all later averages will have", self._writing[0], name, what, width)

    def close(self) -> None:
        """Saves the end of the training, unless that is done, and ends attach(). Later steps are refused."""
        if self._detach:
            self._detach()
        if not self.n_steps:
            log.warning("the recorder is closed before its first step; an attached one counts those that the optimizer makes by step()")
        elif self.dir and not self._is_closed:
            self.save()
        self._is_closed = True
        self.wait()

    def __repr__(self) -> str:
        return f"<posthocema.torch.Recorder: step {self.n_steps}, widths {self.widths}, {len(self._kinds)} tensors, to {self.dir or 'memory'}>"

    def __enter__(self) -> "Recorder":
        return self

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        if kind is None:
            self.close()
        elif self._thread:
            self._thread.join()
        if self._detach:
            self._detach()
        self._is_closed = True

    def _contents(self, k: int, entries: Mapping[str, torch.Tensor]) -> Tuple[Dict[str, Item], Dict[str, str]]:
        """Tensors with the dtypes to write, and metadata, of average k."""
        averages = self._whole(self._averages[k], entries)
        residuals = self._whole(self._residuals[k], entries)
        tensors = {}
        for name, tensor in entries.items():
            first = self._first.get(name)
            if first is None and name not in self._frozen:
                tensors[name] = Item(tensor, tensor.dtype)
            elif first is not None:
                dtype = torch.complex64 if averages[first].is_complex() else self.dtype
                tensors[name] = Item(averages[first], dtype, residuals.get(first))
        kept = f"{'compensated ' if self.compensate else ''}{str(self.average_dtype)[6:]}"
        rhythm = "every step" if self.update_every == 1 else f"exactly, every {self.update_every} steps"
        metadata = {
            "posthoc_ema.time": str(self.n_steps),
            "posthoc_ema.unit": self.unit,
            "posthoc_ema.sigma_rel": repr(self.widths[k]),
            "posthoc_ema.gamma": repr(self._gammas[k]),
            "posthoc_ema.update_rule": f"power function, {rhythm}, {kept}",
            "posthoc_ema.run": self.run_id,
            **self._frozen_metadata(),
        }
        return tensors, metadata

    def _whole(self, parts: List[torch.Tensor], entries: Mapping[str, torch.Tensor]) -> Dict[str, torch.Tensor]:
        """Averages or residuals of a width by name, sharded where their parameters are."""
        return {n: _shards.like(e, entries[n]) for n, e in zip(self._names, parts)}

    # ---- Resuming ----

    def state_dict(self) -> Dict[str, Any]:
        """For the trainer's checkpoint: a run that loads it continues exactly. Tensors are not copied.

        Processes that keep no averages have none in it. Averages of sharded parameters are sharded.
        """
        self.wait()  # a run that continues from here does not write them again
        entries = self._entries(self.model)
        self._check_model(entries)
        return {
            "version": 1,
            "widths": list(self.widths),
            "n_steps": self.n_steps,
            "n_updated": self._n_updated,
            "run_id": self.run_id,
            "averages": [self._whole(averages, entries) for averages in self._averages if self._keeps],
            "residuals": [self._whole(residuals, entries) for residuals in self._residuals if residuals],
        }

    @torch.no_grad()
    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Continues from state_dict(). Widths, names and shapes have to be the same."""
        self.wait()
        found = state if isinstance(state, Mapping) else {}
        if found.get("version") != 1:
            raise InputsError(f"version: expected 1, found {found.get('version')}: this is no state of a recorder")
        for key in ("widths", "n_steps", "run_id", "averages"):
            if key not in found:
                raise InputsError(f"{key}: missing, the state is not whole")
        widths, run_id = c.several(found["widths"]), found["run_id"]
        if widths != self.widths:
            raise InputsError(f"widths: expected {self.widths}, found {widths}")
        n_steps = _whole_number("n_steps", found["n_steps"], 0, InputsError)
        n_updated = _whole_number("n_updated", found.get("n_updated", n_steps), 0, InputsError)
        if n_updated > n_steps:
            raise InputsError(f"n_updated: expected at most {n_steps}, found {n_updated}")
        if not run_id or not isinstance(run_id, str):
            raise InputsError(f"run_id: expected a text, found {run_id!r}")
        if self._keeps:
            parts, rests = (self._check(key, c.several(found.get(key))) for key in ("averages", "residuals"))
            if rests and not self.compensate:
                raise InputsError("residuals: the state has them; make the recorder with compensate=True")
            if not parts:
                raise InputsError("averages: the state has none; rank 0 has the state of a run")
        self._check_folder(run_id)
        if self._keeps:
            for averages, given in zip(self._averages + self._residuals, parts + rests):
                for average, part in zip(averages, given):
                    average.copy_(part)
            for residual in [] if rests else [r for residuals in self._residuals for r in residuals]:  # none before they were kept
                residual.zero_()
        self.n_steps, self.run_id, self._n_updated, self._saved = n_steps, run_id, n_updated, (0, [])
        self._continued_at = self.n_steps
        if self.times and self.n_steps > max(self.times):
            log.warning("step %d: all times are over, only save() and close() will write", self.n_steps)

    def _check(self, key: str, given: Sequence[Any]) -> List[List[torch.Tensor]]:
        """The averages or residuals of a state, in our order; none of a state that has none."""
        if len(given) not in (0, len(self.widths)):
            raise InputsError(f"{key}: expected {len(self.widths)} widths, found {len(given)}")
        states = [{n: _shards.local(t) for n, t in s.items()} if isinstance(s, Mapping) else {} for s in given]
        for state in states:
            kinds = ({n: f"{list(getattr(t, 'shape', ''))} of {getattr(t, 'dtype', type(t))}" for n, t in held.items()}
                     for held in (state, dict(zip(self._names, self._averages[0]))))
            difference = _compare(*kinds)
            if difference:
                raise InputsError(f"{key}: the state is of another model, or was converted: {difference}")
        return [[state[name] for name in self._names] for state in states]

    # ---- Evaluation ----

    def average(self, width: Optional[SupportsFloat] = None, dtype: Optional[DType] = None) -> Dict[str, torch.Tensor]:
        """The tensors of an average, default the first, by name; those of sharded parameters are sharded.

        Names that share a tensor share one here, too. They are copies. dtype: default that of the averages; of complex ones as near.
        """
        if not self._keeps:
            raise UsageError("average: rank 0 alone has averages")
        kept = None if dtype is None else _find_dtype("dtype", dtype, {**_SNAPSHOT_DTYPES, **_AVERAGE_DTYPES})
        k, entries = _find_width("width", self.widths, width), self._entries(self.model)
        self._check_model(entries)
        found = {n: _shards.like(part, entries[n]) for n, part in self._sums(k, kept, copies=True).items()}
        return {name: found[first] for name, first in self._first.items()}

    def _sums(self, k: int, dtype: Optional[torch.dtype] = None, copies: bool = False) -> Dict[str, torch.Tensor]:
        """The parts of this process of an average, with their residuals; without these they may be the average itself."""
        sums = {}
        for i, (name, part) in enumerate(zip(self._names, self._averages[k])):
            wanted = part.dtype if dtype is None else _COMPLEX.get(dtype, torch.complex64) if part.is_complex() else dtype
            wide = part.to(torch.promote_types(part.dtype, wanted), copy=copies)
            sums[name] = (wide + self._residuals[k][i] if self._residuals[k] else wide).to(wanted)
        return sums

    @contextlib.contextmanager
    def copy_to(
        self, model: Optional[torch.nn.Module] = None, width: Optional[SupportsFloat] = None, *, broadcast: bool = False
    ) -> Iterator[torch.nn.Module]:
        """The model (default that of the recorder) has the average of a width (default the first) inside of the block,
        its own tensors after it.

        broadcast: all processes of DistributedDataParallel call it, and get the average from rank 0. Without it
        the others refuse.
        """
        if not self._keeps and not broadcast:
            raise UsageError("copy_to: rank 0 alone has averages; call it there, or on all ranks with broadcast=True")
        k, mine = _find_width("width", self.widths, width), self._entries(self.model)
        self._check_model(mine)
        model = self.model if model is None else model
        entries = self._entries(model, loads=not self.is_sharded)
        kinds = {name: kind for name, kind in self._kinds.items() if name in self._first}
        found = {n: kind for n, kind in _describe(entries).items() if kind != "copied" and n not in self._frozen}
        difference = _compare(found, kinds)
        if difference:
            raise InputsError(f"copy_to: the model has other tensors than that of the recorder: {difference}")
        averages = self._sums(k) if self._keeps else {}

        def own() -> Dict[str, torch.Tensor]:
            """The tensors of the model, to be written; state_dict() also drops whole copies that fully_shard has made of shards."""
            torch.clear_autocast_cache()  # has casts of what they were
            entries = _entries(unwrap(model))
            return {name: _shards.local(entries[name].detach()) for name in self._first}

        held = own()
        before = {name: tensor.clone() for name, tensor in held.items()}
        is_own = any(_memory(tensor) == _memory(mine[name]) for name, tensor in held.items())
        self._n_lent += is_own
        try:
            with torch.no_grad():
                for name, tensor in held.items():
                    if self._keeps:
                        tensor.copy_(averages[self._first[name]])
                    if broadcast and not self.is_sharded:
                        torch.distributed.broadcast(tensor, 0)
            yield model
        finally:
            self._n_lent -= is_own
            with torch.no_grad():
                for name, tensor in own().items():
                    tensor.copy_(before[name])


class Following:
    """What callbacks of trainers share: a recorder that follows an optimizer, and evaluations of one of its averages."""

    recorder: Optional[Recorder] = None
    _detach: Optional[Callable[[], None]] = None
    _lent: Any = None  # the block of copy_to() while the model has the average

    def _prepare(self, widths: Optional[Numbers], evaluate: Optional[SupportsFloat], **options: Any) -> None:
        """Refuses wrong options now. Recorders are made later."""
        options = {name: tuple(value) if isinstance(value, Iterator) else value for name, value in options.items()}
        widths = None if widths is None else c.numbers("widths", widths)
        inspect.signature(Recorder).bind(None, widths, dir="", **options)
        names = inspect.signature(_Options).parameters
        found = _Options(widths, **{name: value for name, value in options.items() if name in names})
        if evaluate is not None:
            _find_width("evaluate", found.widths, evaluate)
        self._evaluate = evaluate
        self._make: Callable[..., Recorder] = functools.partial(Recorder, widths=widths, **options)

    def _save_end(self) -> None:
        if self.recorder is not None and self.recorder.n_steps:
            self.recorder.save()
            self.recorder.wait()

    def _lend(self, broadcast: bool) -> None:
        """Gives the model the average to evaluate, once there is one."""
        if self._evaluate is not None and self.recorder and self.recorder.n_steps and self._lent is None:
            self._lent = self.recorder.copy_to(width=self._evaluate, broadcast=broadcast)
            self._lent.__enter__()

    def _give_back(self) -> None:
        lent, self._lent = self._lent, None
        if lent:
            lent.__exit__(None, None, None)

    def _end_attachment(self) -> None:
        self._give_back()
        if self._detach:
            self._detach()
