# SPDX-License-Identifier: Apache-2.0
"""Averages of sharded parameters (DTensor, FSDP2): each process has its shards, and writes them into one
distributed checkpoint per width."""

from __future__ import annotations

import json
import os
import shutil
from typing import Any, Dict, Mapping, Tuple

import torch

from ._snapshot_files import Item, is_too_large, sync_directory
from .errors import InputsError


def is_sharded(tensor: torch.Tensor) -> bool:
    return hasattr(tensor, "to_local")


def local(tensor: torch.Tensor) -> torch.Tensor:
    """The part of this process; a whole tensor is its own part."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def like(part: torch.Tensor, whole: torch.Tensor) -> torch.Tensor:
    """A part of this process as the sharded tensor that it belongs to."""
    if not is_sharded(whole):
        return part
    from torch.distributed.tensor import DTensor

    sharded: Any = whole
    made: torch.Tensor = DTensor.from_local(
        part, sharded.device_mesh, sharded.placements, run_check=False, shape=whole.shape, stride=whole.stride()
    )
    return made


Tensors = Mapping[str, Item]


def _local_value(item: Item) -> torch.Tensor:
    """The part of this process in the dtype in which it is written."""
    residual = None if item.residual is None else local(item.residual)
    return Item(local(item.tensor), item.dtype, residual).value().detach().to(item.dtype)


def _check_range(tensors: Tensors) -> None:
    """All processes refuse an average that one of them cannot write."""
    import torch.distributed as dist

    wrong = ""
    flag = torch.zeros(1)
    for name, item in tensors.items():
        part = local(item.tensor)
        flag = flag.to(part.device)
        if item.dtype == torch.float16 and is_too_large(part, _local_value(item)):
            wrong = name
            flag += 1
    dist.all_reduce(flag)
    if float(flag) > 0:
        place = f"'{wrong}'" if wrong else "a tensor of another process"
        raise InputsError(f"{place}: an average is too large for float16; use bfloat16 or float32")


def _prepare(partial: str, metadata: Mapping[str, str]) -> None:
    shutil.rmtree(partial, ignore_errors=True)
    os.makedirs(partial)
    with open(os.path.join(partial, "posthoc_ema.json"), "w", encoding="utf-8") as file:
        json.dump(dict(metadata), file, indent=1)
        file.flush()
        os.fsync(file.fileno())


def _publish(path: str) -> None:
    """Gives the checkpoint its name, in place of one of the same name that a resumed run makes again."""
    old = path + ".old.partial"
    shutil.rmtree(old, ignore_errors=True)
    sync_directory(path + ".partial")
    if os.path.isdir(path):
        os.rename(path, old)
    os.rename(path + ".partial", path)
    sync_directory(os.path.dirname(path) or ".")
    shutil.rmtree(old, ignore_errors=True)


def write_all(files: Mapping[str, Tuple[Tensors, Mapping[str, str]]]) -> None:
    """Distributed checkpoints of tensors and metadata, which appear whole under their names. All processes call it."""
    import torch.distributed as dist
    import torch.distributed.checkpoint as dcp

    for tensors, _ in files.values():
        _check_range(tensors)
    for path, (tensors, metadata) in files.items():
        if dist.get_rank() == 0:
            _prepare(path + ".partial", metadata)
        dist.barrier()
        state: Dict[str, Any] = {name: like(_local_value(item), item.tensor) for name, item in tensors.items()}
        dcp.save(state, checkpoint_id=path + ".partial")  # syncs its files; .metadata is the last one
    if dist.get_rank() == 0:
        for path in files:
            _publish(path)
    dist.barrier()
