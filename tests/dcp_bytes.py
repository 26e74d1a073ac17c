#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Distributed checkpoints, byte for byte as a second writer makes them.

  tests/dcp_bytes.py PROGRAM      Python's standard library alone

The second writer (tests/dcp_reference.py) shares nothing with the program; torch 2.15 loads its
output by dcp.load in 1 to 3 processes, resharded, and by dcp_to_torch_save. A safetensors file with
every dtype and shape is converted with 1 to 4 ranks. The division into boxes is read from .metadata
and checked: rows, files, alignment. Then the reference writes the same boxes, and every file must
have the same bytes. Parts, joined, must make the same files, and the way back the same tensors.
"""
import io
import json
import math
import pickle
import random
import struct
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import dcp_reference as reference  # noqa: E402

PROGRAM = sys.argv[1]
MIN_BLOCK = 4096


def run(*arguments):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, f"{arguments}: {done.stderr}"


def write_safetensors(path, tensors):
    header, at = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(t[2] for t in tensors.values()))


def read_safetensors(path):
    content = path.read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + size])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        first, end = entry["data_offsets"]
        data = content[8 + size + first:8 + size + end]
        tensors[name] = (entry["dtype"], tuple(entry["shape"]), data)
    return tensors


class Record:
    def __setstate__(self, state):
        self.state = state

    def __getattr__(self, name):
        return self.__dict__["state"][name]

    def key(self):
        return (self.fqn, self.offset)

    def __hash__(self):
        return hash(self.key())

    def __eq__(self, other):
        return self.key() == other.key()


class Reader(pickle.Unpickler):
    def find_class(self, module, name):
        if module == "torch" and name == "Size":
            return tuple
        if name in ("_get_layout", "_MEM_FORMAT_ENCODING"):
            return lambda value: value
        return type(name, (Record,), {}) if module.startswith("torch.distributed") else name


def make_tensors():
    rng = random.Random(1)
    shapes = {"F32": [(300, 40), (7, 1000), (), (0, 4)], "F16": [(5000,), (1, 9000)], "F64": [(3, 5, 7)],
              "BF16": [(129, 65), (4, 6)], "I64": [(), (2000, 2)], "I32": [(9,)], "I16": [(2, 2)],
              "I8": [(40000,)], "U8": [(3,)], "U16": [(3,)], "U32": [(70, 70)], "U64": [(2,)],
              "BOOL": [(9, 1000)], "C64": [(64, 64)], "F8_E4M3": [(200, 100), ()], "F8_E5M2": [(7,)],
              "F8_E8M0": [(5, 5)]}
    tensors = {}
    for dtype, several in shapes.items():
        for shape in several:
            n = math.prod(shape) * reference.SIZE[dtype]
            data = bytes(rng.getrandbits(1) for _ in range(n)) if dtype == "BOOL" else rng.randbytes(n)
            tensors[f"{dtype}.{'x'.join(map(str, shape))} \u00e9"] = (dtype, shape, data)
    return tensors


def check_division(name, dtype, shape, boxes, ranks):
    """A block of rows for each rank, or the whole tensor in one file."""
    size = math.prod(shape) * reference.SIZE[dtype]
    if ranks == 1 or not shape or shape[0] < 2 or size // ranks < MIN_BLOCK:
        assert [(o, s) for o, s, *_ in boxes] == [(tuple(0 for _ in shape), shape)], name
        return
    block = -(-shape[0] // ranks)
    wanted = [(first, min(block, shape[0] - first), rank)
              for rank, first in enumerate(range(0, shape[0], block))]
    found = [(o[0], s[0], int(f[2:f.index("_0.")])) for o, s, f in boxes]
    assert found == wanted, (name, found, wanted)
    assert all(o[1:] == tuple(0 for _ in shape[1:]) and s[1:] == shape[1:] for o, s, _ in boxes)


def check(root, tensors, ranks):
    out = root / f"out{ranks}"
    run("synth", "-q", "--convert", root / "model.safetensors", f"{out}/", "--ranks", ranks)
    metadata = Reader(io.BytesIO((out / ".metadata").read_bytes())).load()
    assert sorted(metadata.state_dict_metadata) == sorted(tensors)
    where, chunks = {}, {}
    for index, info in metadata.storage_data.items():
        assert info.offset % 64 == 0
        where[index.fqn, index.offset] = (info.relative_path, info.offset)
    for name, stored in metadata.state_dict_metadata.items():
        dtype, shape, data = tensors[name]
        assert stored.size == shape
        boxes = [(c.offsets, c.sizes, where[name, c.offsets][0]) for c in stored.chunks]
        check_division(name, dtype, shape, boxes, ranks)
        row = len(data) // shape[0] if shape and shape[0] else len(data)
        chunks[name] = (dtype, shape, [
            (o, s, data[o[0] * row:(o[0] + s[0]) * row] if o else data, int(f[2:f.index("_0.")]))
            for o, s, f in boxes])
    reference.write(str(root / f"reference{ranks}"), chunks)
    compare(out, root / f"reference{ranks}")
    for file, first in set(where.values()):
        check_zip(out / file, first, metadata)
    sizes = [f.stat().st_size for f in out.glob("*.distcp")]
    assert max(sizes) < 1.2 * min(sizes) + 4096, sizes
    for part in (1, 2, 3):
        run("synth", "-q", "--convert", root / "model.safetensors", f"{root}/joined{ranks}/",
            "--ranks", ranks, "--part", f"{part}/3")
    run("join", "-q", root / f"joined{ranks}")
    compare(root / f"joined{ranks}", out)
    back = root / f"back{ranks}.safetensors"
    run("synth", "-q", "--convert", out, back)
    assert read_safetensors(back) == tensors


def check_zip(path, first, metadata):
    info = next(i for i in metadata.storage_data.values()
                if (i.relative_path, i.offset) == (path.name, first))
    piece = path.read_bytes()[first:first + info.length]
    with zipfile.ZipFile(io.BytesIO(piece)) as archive:
        assert archive.testzip() is None
        assert archive.namelist()[0] == "archive/data.pkl"


def compare(left, right):
    names = sorted(f.name for f in left.iterdir())
    assert names == sorted(f.name for f in right.iterdir()), names
    for name in names:
        assert (left / name).read_bytes() == (right / name).read_bytes(), f"{left / name} differs"


with tempfile.TemporaryDirectory() as folder:
    tensors = make_tensors()
    write_safetensors(Path(folder) / "model.safetensors", tensors)
    for ranks in (1, 2, 3, 4):
        check(Path(folder), tensors, ranks)
print(f"{len(tensors)} tensors: every byte as in the reference, with 1 to 4 ranks")
