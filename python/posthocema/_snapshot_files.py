# SPDX-License-Identifier: Apache-2.0
"""Snapshots as safetensors files that appear whole or not at all, all widths of a time together."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple

import torch

from .errors import InputsError

_NAMES = {
    torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16",
    torch.int64: "I64", torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8",
    torch.bool: "BOOL", torch.complex64: "C64",
}  # fmt: skip


def sync_directory(path: str) -> None:
    """Makes the names in a directory durable."""
    directory = os.open(path, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def is_too_large(value: torch.Tensor, rounded: torch.Tensor) -> bool:
    """Whether a 16-bit dtype made finite elements infinite."""
    return rounded.dtype == torch.float16 and bool(torch.isinf(rounded).sum() > torch.isinf(value).sum())


class Item(NamedTuple):
    """A tensor and the dtype in which it is written; an average may have a residual, which is added."""

    tensor: torch.Tensor
    dtype: torch.dtype
    residual: Optional[torch.Tensor] = None

    def value(self) -> torch.Tensor:
        return self.tensor if self.residual is None else self.tensor + self.residual


class Contents:
    """The tensors of one file by name."""

    def __init__(self, tensors: Mapping[str, Item], metadata: Mapping[str, str]) -> None:
        self._header: Dict[str, Any] = {"__metadata__": dict(metadata)}
        self._tensors: List[Tuple[str, Item]] = []
        sizes = {name: torch.empty(0, dtype=item.dtype).element_size() for name, item in tensors.items()}
        at = 0
        for name in sorted(tensors, key=lambda name: (-sizes[name], name)):  # aligned without gaps
            tensor, dtype, _ = tensors[name]
            if dtype not in _NAMES:
                raise InputsError(f"'{name}': {dtype} cannot be written")
            end = at + tensor.numel() * sizes[name]
            self._header[name] = {"dtype": _NAMES[dtype], "shape": list(tensor.shape), "data_offsets": [at, end]}
            self._tensors.append((name, tensors[name]))
            at = end

    def write(self, file: Any) -> None:
        """Writes header and tensors, one tensor in memory at a time."""
        text = json.dumps(self._header, ensure_ascii=False, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        file.write(len(text).to_bytes(8, "little") + text)
        for name, item in self._tensors:
            value = item.value().detach()
            written = value.to("cpu", item.dtype).contiguous()
            if is_too_large(value, written):
                raise InputsError(f"'{name}': an average is too large for float16; use bfloat16 or float32")
            if written.numel():
                size = written.numel() * written.element_size()
                file.write((ctypes.c_char * size).from_address(written.data_ptr()))


def write_all(files: Mapping[str, Contents]) -> None:
    """Writes PATH.partial of every path and syncs them; then renames all. A failure leaves none."""
    try:
        for path, contents in files.items():
            with open(path + ".partial", "wb") as file:
                contents.write(file)
                file.flush()
                os.fsync(file.fileno())
        for path in files:
            os.replace(path + ".partial", path)
    except BaseException:
        for path in files:
            with contextlib.suppress(OSError):
                os.unlink(path + ".partial")
        raise
    for directory in {os.path.dirname(path) or "." for path in files}:
        sync_directory(directory)
