# SPDX-License-Identifier: Apache-2.0
"""Averages of sharded parameters (DTensor, FSDP2): each process has its shards, and writes them into one
distributed checkpoint per width."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

import torch

from ._files import create, lock, naming, partial_of, publish_directory
from ._snapshot_files import Item, is_too_large
from .errors import Error, InputsError, OutputError


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


def local_value(item: Item) -> torch.Tensor:
    """The part of this process in the dtype in which it is written."""
    residual = None if item.residual is None else local(item.residual)
    return Item(local(item.tensor), item.dtype, residual).value().detach().to(item.dtype)


def _check_range(tensors: Mapping[str, Item]) -> None:
    """All processes refuse an average that one of them cannot write."""
    import torch.distributed as dist

    wrong = ""
    flag = torch.zeros(1)
    for name, item in tensors.items():
        part = local(item.tensor)
        flag = flag.to(part.device)
        if item.dtype == torch.float16 and is_too_large(part, local_value(item)):
            wrong = name
            flag += 1
    dist.all_reduce(flag)
    if float(flag) > 0:
        place = f"'{wrong}'" if wrong else "a tensor of another process"
        raise InputsError(f"{place}: an average is too large for float16; use bfloat16 or float32")


@contextlib.contextmanager
def together() -> Iterator[None]:
    """What the writer does: its failure is that of all processes, so that none waits for it. All come here."""
    import torch.distributed as dist

    failure: Optional[Exception] = None
    try:
        yield
    except (OSError, Error) as error:
        failure = error
    found: List[Optional[str]] = [None] * dist.get_world_size()
    dist.all_gather_object(found, None if failure is None else str(failure))
    if failure:
        raise failure
    for rank, text in enumerate(found):
        if text is not None:
            raise OutputError(f"rank {rank}: {text}")


def share(value: Any) -> Any:
    """What rank 0 has, on all processes."""
    import torch.distributed as dist

    held = [value]
    dist.broadcast_object_list(held)
    return held[0]


def _prepare(partial: str, metadata: Mapping[str, str]) -> int:
    """Makes a directory, which is locked until the descriptor is closed."""
    os.mkdir(partial)
    held = os.open(partial, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    lock(held)
    with create(os.path.join(partial, "posthoc_ema.json")) as file:
        file.write(json.dumps(dict(metadata), indent=1).encode())
        file.flush()
        os.fsync(file.fileno())
    return held


def _save(state: Dict[str, Any], partial: str, path: str) -> None:
    """Every process writes its part; the failure of one is that of all."""
    import torch.distributed.checkpoint as dcp

    try:
        dcp.save(state, checkpoint_id=partial)  # syncs its files; .metadata is the last one
    except dcp.CheckpointException as error:  # of all processes; no Exception
        rank, (cause, _) = next(iter(sorted(error.failures.items())))
        found = OutputError(f"{path}: rank {rank}: {cause}")
        found.errno = getattr(cause, "errno", None)
        raise found from error


def write_all(files: Mapping[str, Tuple[Mapping[str, Item], Mapping[str, str]]], run: str) -> None:
    """Distributed checkpoints of tensors and metadata, which appear whole under their names. All processes call it."""
    import torch.distributed as dist

    for tensors, _ in files.values():
        _check_range(tensors)
    partials: Dict[str, str] = share({path: partial_of(path, run) for path in files})
    held: List[int] = []
    is_writer = dist.get_rank() == 0
    try:
        for path, (tensors, metadata) in files.items():
            with together(), naming(path):
                held += [_prepare(partials[path], metadata)] if is_writer else []
            state: Dict[str, Any] = {name: like(local_value(item), item.tensor) for name, item in tensors.items()}
            _save(state, partials[path], path)
        with together():
            for path, partial in partials.items() if is_writer else ():
                with naming(path):
                    publish_directory(partial, path, run)
    finally:
        for fd in held:
            os.close(fd)
        for partial in partials.values() if is_writer else ():
            shutil.rmtree(partial, ignore_errors=True)
