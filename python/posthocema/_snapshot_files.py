# SPDX-License-Identifier: Apache-2.0
"""Snapshots as safetensors files, and the runs that snapshots in a directory belong to."""

from __future__ import annotations

import ctypes
import hashlib
import json
import math
import os
import re
import stat
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import torch

from ._files import MOST_HEADER, write_header
from .averages import _TORCH
from .errors import InputsError, OutputError

_NAMES = {getattr(torch, dtype): name for name, dtype in _TORCH.items() if hasattr(torch, dtype) and name != "C128"}
_MOST_F16 = 65504.0


def _bytes_of(tensor: torch.Tensor) -> Any:
    """Of a contiguous tensor in memory, which has to stay."""
    size = tensor.numel() * tensor.element_size()
    return (ctypes.c_char * size).from_address(tensor.data_ptr()) if size else b""


def digest(tensor: torch.Tensor) -> str:
    """Of dtype, shape and bytes."""
    held = tensor.detach().to("cpu").contiguous()
    found = hashlib.sha256(f"{held.dtype} {list(held.shape)} ".encode())
    found.update(_bytes_of(held))
    return found.hexdigest()


def sample(tensor: torch.Tensor) -> List[Any]:
    """Some elements."""
    flat = tensor.detach().reshape(-1)
    return list(flat[:: flat.numel() // 64 + 1].tolist())


def combine(digests: Mapping[str, str]) -> str:
    """The digest of tensors by name."""
    return "sha256:" + hashlib.sha256(json.dumps(sorted(digests.items())).encode()).hexdigest()


def is_too_large(value: torch.Tensor, rounded: torch.Tensor) -> bool:
    """Whether a 16-bit dtype made finite elements infinite."""
    return bool(torch.isinf(rounded).sum() > torch.isinf(value).sum())


class Item(NamedTuple):
    """A tensor and the dtype in which it is written; an average may have a residual, which is added."""

    tensor: torch.Tensor
    dtype: torch.dtype
    residual: Optional[torch.Tensor] = None

    def value(self) -> torch.Tensor:
        return self.tensor if self.residual is None else self.tensor + self.residual


class Contents:
    """The tensors of one file by name. warn: called with the names of averages that are NaN or infinite."""

    def __init__(self, tensors: Mapping[str, Item], metadata: Mapping[str, str], warn: Callable[[str], None]) -> None:
        sizes = {name: torch.empty(0, dtype=item.dtype).element_size() for name, item in tensors.items()}
        self._metadata, self._warn, self._is_held = metadata, warn, False
        self._tensors = sorted(tensors.items(), key=lambda pair: (-sizes[pair[0]], pair[0]))  # aligned without gaps
        self._header: List[Tuple[str, str, Sequence[int], int]] = []
        for name, (tensor, dtype, _) in self._tensors:
            if dtype not in _NAMES:
                raise InputsError(f"'{name}': {dtype} cannot be written")
            self._header.append((name, _NAMES[dtype], tensor.shape, tensor.numel() * sizes[name]))

    def _rounded(self, name: str, item: Item) -> torch.Tensor:
        value = item.value().detach()
        rounded = value.to(item.dtype)
        reals = torch.view_as_real(value) if value.is_complex() else value
        if not reals.is_floating_point() or not reals.numel() or reals.element_size() == 1:
            return rounded
        most = max(abs(float(end)) for end in torch.aminmax(reals))  # one fast pass; NaN where there is one
        if not math.isfinite(most):
            self._warn(name)
        if item.dtype == torch.float16 and not most <= _MOST_F16 and is_too_large(value, rounded):
            raise InputsError(f"'{name}': an average is too large for float16; use bfloat16 or float32")
        return rounded

    def hold(self, memory: Dict[str, torch.Tensor]) -> None:
        """Copies what is to be written, after which the tensors may change. Copies of later snapshots take the same memory."""
        devices = {item.tensor.device for _, item in self._tensors if item.tensor.is_cuda}
        for k, (name, item) in enumerate(self._tensors):
            rounded = self._rounded(name, item)
            copy = memory.get(name)
            if copy is None or (copy.shape, copy.dtype) != (rounded.shape, rounded.dtype):
                with torch.inference_mode(False):  # also for saves that are not
                    copy = memory[name] = torch.empty(rounded.shape, dtype=rounded.dtype, device="cpu", pin_memory=rounded.is_cuda)
            copy.copy_(rounded, non_blocking=True)
            self._tensors[k] = (name, Item(copy, item.dtype))
        self._is_held = True
        for device in devices:
            torch.cuda.synchronize(device)  # the copies are there

    def write(self, file: Any) -> None:
        """Writes header and tensors, one tensor in memory at a time."""
        write_header(file, self._header, self._metadata)
        for name, item in self._tensors:
            written = item.tensor if self._is_held else self._rounded(name, item).to("cpu").contiguous()
            file.write(_bytes_of(written))


# ---- Runs ----


def _read_metadata(path: str) -> Any:
    """Of a safetensors file, or of a directory of this package. Waits for no writer of a FIFO."""
    is_directory = os.path.isdir(path)
    name = os.path.join(path, "posthoc_ema.json") if is_directory else path
    with os.fdopen(os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return None
        if is_directory:
            return json.loads(file.read(MOST_HEADER))
        size = int.from_bytes(file.read(8), "little")
        return json.loads(file.read(size)).get("__metadata__") if size <= MOST_HEADER else None


def metadatum(path: str, key: str) -> str:
    """Of a snapshot, as its "run"; empty where it has none."""
    try:
        found = _read_metadata(path)
    except (OSError, ValueError, AttributeError, RecursionError):
        return ""
    value = found.get(f"posthoc_ema.{key}") if isinstance(found, dict) else None
    return value if isinstance(value, str) else ""


def find_snapshots(directory: str, prefix: str) -> Iterator[Tuple[int, str]]:
    """Steps and paths of what has the name of a recorder's snapshot, by step."""
    form = re.compile(re.escape(prefix) + r"-(\d{7,})-[0-9.e-]+?(\.safetensors)?")
    matches = [(form.fullmatch(name), name) for name in os.listdir(directory)]
    for step, name in sorted((int(match[1]), name) for match, name in matches if match):
        yield step, os.path.join(directory, name)


def refuse_other(path: str, run: str) -> None:
    """Refuses a snapshot of another run than this."""
    found = metadatum(path, "run")
    if found != run:
        other = f"belongs to run {found}" if found else "names no run"
        raise OutputError(f"{path}: {other}, this recorder is run {run}; give another dir, load the state of that run, or replace=True")
