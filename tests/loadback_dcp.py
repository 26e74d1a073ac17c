#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""New distributed checkpoints, loaded with torch.

  tests/loadback_dcp.py PROGRAM      needs torch 2.4 or later; ends with status 77 where there is none

The program converts one safetensors file to distributed checkpoints of 1 and 3 ranks. torch loads
each by dcp.load in 1, 2 and 3 gloo processes, resharded by rows, by columns and not at all; by
dcp_to_torch_save; and each piece by torch.load(weights_only=True). All bits must be those of the
safetensors file. An older torch loads the pieces only.
"""
import io
import json
import os
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

try:
    import torch
except ImportError:
    print("skipped: torch is not importable; to run it: apt-get install python3-torch")
    sys.exit(77)

VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])
NAMES = {"F32": "float32", "F16": "float16", "F64": "float64", "BF16": "bfloat16", "I64": "int64",
         "I32": "int32", "I16": "int16", "I8": "int8", "U8": "uint8", "BOOL": "bool",
         "C64": "complex64", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "U16": "uint16",
         "U32": "uint32", "U64": "uint64"}
SHAPES = [(), (0, 4), (7,), (300, 40), (33, 65, 3)]
END = b"PK\x06\x07"
LONGEST_S = 300 # for the processes of one group


def bits(tensor):
    return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)


def is_same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(bits(a), bits(b))


def make_tensors():
    torch.manual_seed(1)
    tensors = {}
    for name, dtype in NAMES.items():
        if not hasattr(torch, dtype):
            continue
        dtype = getattr(torch, dtype)
        elem = torch.zeros(1, dtype=dtype).element_size()
        for shape in SHAPES:
            n = int(torch.Size(shape).numel()) * elem
            high = 2 if dtype == torch.bool else 256
            data = torch.randint(high, (n,), dtype=torch.uint8)
            tensors[f"{name}.{len(shape)}.{n}"] = data.view(dtype).reshape(shape)
    return tensors


def write_safetensors(path, tensors):
    header, at, data = {}, 0, []
    for name, tensor in tensors.items():
        data.append(bytes(bits(tensor).tolist()))
        header[name] = {"dtype": name.split(".")[0], "shape": list(tensor.shape),
                        "data_offsets": [at, at + len(data[-1])]}
        at += len(data[-1])
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data))


def pieces_of(folder):
    """The zips in its files: each ends in a zip64 locator, which says where its directory ends."""
    for file in sorted(folder.glob("*.distcp")):
        content, at = file.read_bytes(), 0
        while (found := content.find(END, at)) >= 0:
            size = struct.unpack("<Q", content[found + 8:found + 16])[0] + 56 + 20 + 22
            yield content[found + 42 - size:found + 42]
            at = found + 42


def check_pieces(folder, tensors):
    n_elems = 0
    for piece in pieces_of(folder):
        tensor = torch.load(io.BytesIO(piece), weights_only=True)
        assert isinstance(tensor, torch.Tensor)
        n_elems += tensor.numel()
    assert n_elems == sum(tensor.numel() for tensor in tensors.values())


def check_rank(rank, n, folder, meeting, expected):
    import torch.distributed as dist
    import torch.distributed.checkpoint as dcp
    from torch.distributed.device_mesh import init_device_mesh
    try:
        from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    except ImportError:
        from torch.distributed._tensor import Replicate, Shard, distribute_tensor
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=n)
    mesh = init_device_mesh("cpu", (n,))
    tensors = torch.load(expected, weights_only=True)
    for placement in (Shard(0), Shard(1), Replicate(), None):
        state = {}
        for name, tensor in tensors.items():
            dim = getattr(placement, "dim", -1)
            empty = torch.zeros(tensor.shape, dtype=torch.uint8).to(tensor.dtype)
            is_divided = dim < tensor.dim() and tensor.numel() > 0 and \
                tensor.dtype.is_floating_point and tensor.element_size() > 1
            state[name] = distribute_tensor(empty, mesh, [placement]) \
                if placement is not None and is_divided else empty
        dcp.load(state, checkpoint_id=folder)
        for name, tensor in tensors.items():
            loaded = state[name]
            loaded = loaded.full_tensor() if hasattr(loaded, "full_tensor") else loaded
            assert is_same(loaded, tensor), (name, placement, n)
    # Some versions of torch hang in destroy_process_group. The processes end at once when all of them are done.
    Path(f"{meeting}.{rank}").touch()
    end = time.monotonic() + LONGEST_S
    while not all(Path(f"{meeting}.{r}").exists() for r in range(n)) and time.monotonic() < end:
        time.sleep(0.01)
    os._exit(0)


def check_dcp(folder, tensors, root):
    import torch.multiprocessing as processes
    from torch.distributed.checkpoint.format_utils import dcp_to_torch_save
    expected = str(root / "expected.pt")
    torch.save(tensors, expected)
    for n in (1, 2, 3):
        meeting = str(root / f"{folder.name}-{n}")
        ranks = processes.spawn(check_rank, (n, str(folder), meeting, expected), nprocs=n, join=False)
        end = time.monotonic() + LONGEST_S
        while not ranks.join(timeout=1):
            if time.monotonic() > end:
                done = [r for r in range(n) if Path(f"{meeting}.{r}").exists()]
                for process in ranks.processes:
                    process.kill()
                raise AssertionError(f"{folder.name}, read by {n} processes: only {done} end within {LONGEST_S} s")
    dcp_to_torch_save(str(folder), str(root / "saved.pt"))
    saved = torch.load(str(root / "saved.pt"), weights_only=True)
    assert saved.keys() == tensors.keys()
    assert all(is_same(saved[name], tensor) for name, tensor in tensors.items())


def main(program):
    has_dcp = VERSION >= (2, 4)
    tensors = make_tensors()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_safetensors(root / "model.safetensors", tensors)
        for ranks in (1, 3):
            out = root / f"ranks{ranks}"
            subprocess.run([program, "synth", "-q", "--convert", root / "model.safetensors",
                            f"{out}/", "--ranks", str(ranks)], check=True, stdout=subprocess.DEVNULL)
            check_pieces(out, tensors)
            if has_dcp:
                check_dcp(out, tensors, root)
    if not has_dcp:
        print(f"skipped: torch {torch.__version__} loads the pieces, and dcp.load needs 2.4; "
              "to run it: python3 -m venv build/torch && build/torch/bin/pip install torch numpy")
        sys.exit(77)
    print(f"torch {torch.__version__}: {len(tensors)} tensors, every bit as in the safetensors file")


if __name__ == "__main__":
    main(sys.argv[1])
