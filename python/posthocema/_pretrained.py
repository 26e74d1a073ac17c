# SPDX-License-Identifier: Apache-2.0
"""An average as a folder of a model, like one that save_pretrained() of transformers or diffusers has written."""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING, Any, Dict, List, Optional

from ._files import MOST_HEADER, create, naming, partial_of, publish_directory, write_header
from .errors import FileError, InputsError, OutputError, error_of

if TYPE_CHECKING:
    from .averages import Plan

_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".pkl", ".msgpack", ".h5", ".onnx", ".gguf")  # and states
_DTYPES = {"F32": "f32", "F16": "f16", "BF16": "bf16"}
_ELEMENTS = {"64": 8, "32": 4, "16": 2}  # bytes, by the end of a dtype's name


class _File:
    """A safetensors file of the folder that is imitated."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            with open(path, "rb") as file:
                size = int.from_bytes(file.read(8), "little")
                self.tensors: Dict[str, Any] = json.loads(file.read(min(size, MOST_HEADER)))
            self.metadata = self.tensors.pop("__metadata__", {})
        except OSError as error:
            raise error_of(FileError.status, f"{path}: {error.strerror}") from error
        except (ValueError, AttributeError, RecursionError) as error:
            raise FileError(f"{path}: is no safetensors file: {error}") from error
        self.data_at = 8 + size

    def read(self, name: str) -> bytes:
        begin, end = self.tensors[name]["data_offsets"]
        with open(self.path, "rb") as file:
            file.seek(self.data_at + begin)
            return file.read(end - begin)


class _Average:
    """A target of a plan, tensor by tensor, in the dtypes of the files that are imitated or in one dtype."""

    def __init__(self, plan: Plan, target: int, dtype: Optional[str], files: List[_File]) -> None:
        self.plan, self.target, self.dtype = plan, target, dtype
        self.known = {info.name: info for info in plan.tensors()}
        self.unwritten = set(self.known).difference(*(file.tensors for file in files))  # may be tied to others

    def check(self, file: _File, strict: bool) -> None:
        for name, found in file.tensors.items():
            here = list(self.known[name].shape) if name in self.known else None
            if here not in (None, found["shape"]):
                raise InputsError(f"{file.path}: tensor '{name}': is {found['shape']}, in the snapshots {here}")
            if here is None and strict:
                raise InputsError(f"{file.path}: tensor '{name}': is not in the snapshots; strict=False takes it from there")

    def _dtype(self, name: str, found: str) -> Any:
        return self.dtype or _DTYPES.get(found) if self.known[name].is_averaged else None

    def _data(self, name: str, dtype: Any) -> memoryview:
        return self.plan.tensor(name, self.target, dtype=dtype, kind="buffer").cast("B")

    def write(self, file: _File, out: Any) -> None:
        rows = []
        for name, found in file.tensors.items():
            if name in self.known:
                info = self.plan._find(name, self._dtype(name, found["dtype"]))
                rows.append((name, info.dtype, info.shape, info.bytes))
            else:
                begin, end = found["data_offsets"]
                rows.append((name, found["dtype"], found["shape"], end - begin))
        rows.sort(key=lambda row: -_ELEMENTS.get(row[1][-2:], 1))  # aligned without gaps
        write_header(out, rows, {"format": "pt", **file.metadata})
        for name, _, shape, _ in rows:
            if name not in self.known:
                out.write(file.read(name))
                continue
            dtype = self._dtype(name, file.tensors[name]["dtype"])
            data = self._data(name, dtype)
            out.write(data)
            alike = [other for other in self.unwritten if self.known[other].shape == tuple(shape)]
            self.unwritten -= {other for other in alike if self._data(other, dtype) == data}


def _write_other(path: str, dtype: Optional[str], out: Any) -> None:
    with open(path, "rb") as source:
        data = source.read()
    if dtype and os.path.basename(path) == "config.json":
        config = json.loads(data)
        name = {"f32": "float32", "f16": "float16", "bf16": "bfloat16"}[dtype]
        data = json.dumps({**config, **{key: name for key in ("dtype", "torch_dtype") if key in config}}, indent=2).encode()
    out.write(data)


def save(plan: Plan, directory: str, target: int, like: str, dtype: Optional[str], strict: bool, replace: bool) -> None:
    """See Plan.save_pretrained."""
    try:
        paths = [entry.path for entry in sorted(os.scandir(like), key=lambda entry: entry.name) if entry.is_file()]
    except OSError as error:
        raise error_of(FileError.status, f"{like}: {error.strerror}") from error
    files = {path: _File(path) for path in paths if path.endswith(".safetensors")}
    if not files or not any(path.endswith("config.json") for path in paths):
        raise InputsError(f"{like}: is no folder of a model: expected a config.json and safetensors files")
    average = _Average(plan, target, dtype, list(files.values()))
    for file in files.values():
        average.check(file, strict)
    if os.path.lexists(directory) and not replace:
        raise error_of(OutputError.status, f"{directory}: exists already; replace=True replaces it")
    partial = partial_of(directory)
    try:
        with naming(directory):
            os.makedirs(partial)
            for path in paths:
                if path in files or not path.endswith(_WEIGHTS):
                    with create(os.path.join(partial, os.path.basename(path))) as out:
                        average.write(files[path], out) if path in files else _write_other(path, dtype, out)
                        out.flush()
                        os.fsync(out.fileno())
            if average.unwritten:
                name = min(average.unwritten)
                raise InputsError(f"'{name}': is in the snapshots, but not in {like}, nor tied to a tensor there; exclude it")
            publish_directory(partial, directory)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
