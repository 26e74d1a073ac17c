#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Distributed checkpoints, byte for byte as a second writer makes them.

  tests/dcp_bytes.py PROGRAM      Python's standard library alone

The second writer (tests/dcp_reference.py) shares nothing with the program; torch 2.15 loads its
output by dcp.load in 1 to 3 processes, resharded, and by dcp_to_torch_save. A safetensors file with
every dtype and shape is converted with 1 to 4 ranks. The division into boxes is read from .metadata
and checked: rows, files, alignment. Then the reference writes the same boxes, and every file must
have the same bytes. Parts, joined, must make the same files, and the way back the same tensors.

Then templates of --into: boxes by rows, columns and blocks, an object, tensors that stay, averages
between a prefix and a suffix. The copy must be what the reference writes with the new data. Last,
templates that cannot be copied are refused with a sentence.
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


def run(*arguments, status=0):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == status, f"{arguments}: {done.returncode}: {done.stderr}"
    return done.stderr


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


# ---- Templates ----

def boxes_of(shape, cuts):
    """All boxes of a tensor that is cut at these indices of each dimension."""
    boxes = [((), ())]
    for size, inner in zip(shape, cuts):
        ends = [*inner, size]
        boxes = [(o + (first,), s + (end - first,)) for o, s in boxes
                 for first, end in zip([0, *inner], ends)]
    return boxes


def take(data, shape, start, size):
    """The bytes of a box."""
    if not shape:
        return data
    row = len(data) // shape[0]
    return b"".join(take(data[i * row:(i + 1) * row], shape[1:], start[1:], size[1:])
                    for i in range(start[0], start[0] + size[0]))


def cut(dtype, shape, data, cuts):
    return dtype, shape, [(o, s, take(data, shape, o, s), k % 2)
                          for k, (o, s) in enumerate(boxes_of(shape, cuts))]


CUTS = {"rows": ((30, 9), ((7, 20), ())), "columns": ((8, 70), ((), (3, 33))),
        "blocks": ((6, 5, 8), ((2,), (1, 4), (7,))), "scalar": ((), ())}


def template(seed, prefix="", suffix=""):
    rng = random.Random(seed)
    data = {n: rng.randbytes(4 * math.prod(shape)) for n, (shape, _) in CUTS.items()}
    tensors = {f"{prefix}{n}{suffix}": cut("I32", shape, data[n], cuts)
               for n, (shape, cuts) in CUTS.items()}
    return {n: ("I32", CUTS[n][0], d) for n, d in data.items()}, tensors


def check_templates(root):
    objects = {"step": (reference.int_piece(123), 1)}
    _, old = template(1)
    new, replaced = template(2)
    _, kept = template(3, prefix="optimizer.")
    reference.write(str(root / "old"), {**old, **kept}, objects)
    reference.write(str(root / "wanted"), {**replaced, **kept}, objects)
    (root / "old" / "config.json").write_text("{}")
    (root / "wanted" / "config.json").write_text("{}")
    write_safetensors(root / "new.safetensors", new)
    run("synth", "-q", "--convert", root / "new.safetensors", "--into", root / "old", root / "copy")
    compare(root / "copy", root / "wanted")
    check_averages(root, objects)
    check_folders(root)
    check_refused(root, new)


def check_averages(root, objects):
    """Of a trainer that keeps raw tensors next to averages, the averages are replaced."""
    rng = random.Random(4)
    names = ("a.weight", "b.bias")
    values = {n: rng.randbytes(240) for n in names}

    def checkpoint(average):
        tensors = {n: cut("U8", (6, 40), values[n], ((), ())) for n in names}
        tensors |= {f"ema.state.{n}.ema_params": cut("F32", (6, 10), average[n], ((2,), ()))
                    for n in names}
        tensors |= {n: cut("F32", (6, 10), bytes(240), ((2,), ())) for n in names}
        return tensors

    old = {n: struct.pack("<60f", *[rng.random() for _ in range(60)]) for n in names}
    new = {n: struct.pack("<60f", *[rng.random() for _ in range(60)]) for n in names}
    reference.write(str(root / "titan"), checkpoint(old), objects)
    reference.write(str(root / "titan_wanted"), checkpoint(new), objects)
    (root / "run").mkdir()
    for time in (10, 20):  # two equal snapshots: the average is exact
        write_safetensors(root / "run" / f"s-{time}-0.100.safetensors",
                          {n: ("F32", (6, 10), new[n]) for n in names})
    run("synth", "-q", "--sigma-rel", "0.1", root / "run", "--into", root / "titan",
        root / "titan_copy")
    provenance = root / "titan_copy" / "posthoc_ema.json"
    run("verify", root / "titan_copy")
    assert json.loads(provenance.read_text())["posthoc_ema.provenance"]["snapshots"]
    provenance.unlink()
    compare(root / "titan_copy", root / "titan_wanted")


def check_folders(root):
    """A trainer that keeps model and optimizer in folders: all of them are copied."""
    def write(name, average, raw):
        tensors = {"net_ema.w": cut("F32", (6, 10), average, ((2,), ())),
                   "net.w": cut("F32", (6, 10), raw, ((2,), ()))}
        (root / name).mkdir()
        reference.write(str(root / name / "model"), tensors)
        reference.write(str(root / name / "optim"), {"m": cut("U8", (6, 40), raw, ((3,), ()))})
        (root / name / "rng" / "deep").mkdir(parents=True)
        (root / name / "rng" / "deep" / "state").write_bytes(raw)

    rng = random.Random(5)
    old, new, raw = (struct.pack("<60f", *[rng.random() for _ in range(60)]) for _ in range(3))
    write("cosmos", old, raw)
    write("cosmos_wanted", new, raw)
    write_safetensors(root / "one.safetensors", {"w": ("F32", (6, 10), new)})
    run("synth", "-q", "--convert", root / "one.safetensors", "--into", root / "cosmos",
        "--key", "ema", root / "cosmos_copy")
    for folder in ("model", "optim"):
        compare(root / "cosmos_copy" / folder, root / "cosmos_wanted" / folder)
    state = Path("rng") / "deep" / "state"
    assert (root / "cosmos_copy" / state).read_bytes() == raw
    names = {p.relative_to(root / "cosmos_copy") for p in (root / "cosmos_copy").rglob("*")}
    assert names == {p.relative_to(root / "cosmos") for p in (root / "cosmos").rglob("*")}, names


def check_refused(root, new):
    def refused(name, sentence, status):
        text = run("synth", "-q", "--convert", root / "new.safetensors", "--into", root / name,
                   root / "none", status=status)
        assert sentence in text, text
        assert not list(root.glob("none*"))

    tensors = template(1)[1]
    reference.write(str(root / "short"), {n: t for n, t in tensors.items() if n != "scalar"})
    refused("short", "has no tensor 'scalar'", 4)
    other = {**tensors, "rows": cut("I32", (9, 30), bytes(1080), ((), ()))}
    reference.write(str(root / "shape"), other)
    refused("shape", "has another shape", 4)
    reference.write(str(root / "folder"), tensors)
    (root / "elsewhere").mkdir()
    (root / "folder" / "link").symlink_to(root / "elsewhere")
    refused("folder", "is neither a regular file nor a folder", 2)
    reference.write(str(root / "shared"), share_place(tensors))
    move_place(root / "shared")
    refused("shared", "share bytes", 4)
    reference.write(str(root / "cut"), tensors)
    file = root / "cut" / "__0_0.distcp"
    file.write_bytes(file.read_bytes()[:-200])
    refused("cut", "__0_0.distcp", 3)


def share_place(tensors):
    same = cut("I32", (30, 9), bytes(1080), ((), ()))
    return {**tensors, "one": same, "two": same}


def move_place(folder):
    """.metadata that gives the piece of "one" to "two" as well: equal lengths, other offsets."""
    content = (folder / ".metadata").read_bytes()
    metadata = Reader(io.BytesIO(content)).load()
    places = {index.fqn: info for index, info in metadata.storage_data.items()
              if index.fqn in ("one", "two")}
    one, two = places["one"], places["two"]
    assert one.relative_path == two.relative_path and one.length == two.length
    wanted = reference.p_text("offset") + reference.p_int(two.offset)
    instead = reference.p_text("offset") + reference.p_int(one.offset)
    assert len(wanted) == len(instead) and content.count(wanted) == 1
    (folder / ".metadata").write_bytes(content.replace(wanted, instead))


with tempfile.TemporaryDirectory() as folder:
    tensors = make_tensors()
    write_safetensors(Path(folder) / "model.safetensors", tensors)
    for ranks in (1, 2, 3, 4):
        check(Path(folder), tensors, ranks)
    check_templates(Path(folder))
print(f"{len(tensors)} tensors: every byte as in the reference, with 1 to 4 ranks")
