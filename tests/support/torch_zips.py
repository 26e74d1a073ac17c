#!/usr/bin/env python3
"""Snapshots as torch writes them, without torch: DIR/a.1.pt and DIR/a.2.pt, each a zip whose records are larger than
the blocks that processes share. Two names of one tensor, tensors side by side in one storage with bytes between them
that belong to none, integers, and a record without a tensor that is replaced.

    tests/support/torch_zips.py DIR
"""
import random
import sys
import zipfile
from struct import pack

# name, storage, type, elements of the storage, first element, elements
TENSORS = [
    ("large", "0", "Float", 50000, 0, 50000),
    ("left", "1", "Half", 30000, 0, 9000),
    ("right", "1", "Half", 30000, 12345, 17000),
    ("tied", "2", "Float", 7000, 0, 7000),
    ("tied again", "2", "Float", 7000, 0, 7000),
    ("count", "3", "Long", 2000, 0, 2000),
    ("bias", "4", "Double", 3, 0, 3),
]
SIZES = {"Float": 4, "Half": 2, "Long": 8, "Double": 8}


def text(value):
    return b"X" + pack("<I", len(value)) + value.encode()


def number(value):
    return b"J" + pack("<i", value)


def rebuild(name, storage, kind, n_stored, first, n):
    """The pickle of one item of the dict: its name, and a call of _rebuild_tensor_v2."""
    place = b"ctorch\n" + kind.encode() + b"Storage\n"
    persistent = b"(" + text("storage") + place + text(storage) + text("cpu") + number(n_stored) + b"tQ"
    shape = number(n) + b"\x85" + number(1) + b"\x85"
    return text(name) + b"ctorch._utils\n_rebuild_tensor_v2\n(" + persistent + number(first) + shape + b"\x89NtR"


def numbers(rng, kind, n):
    if kind == "Long":
        return pack(f"<{n}q", *(rng.randrange(100) for _ in range(n)))
    code = {"Float": "f", "Half": "e", "Double": "d"}[kind]
    return pack(f"<{n}{code}", *(rng.uniform(-1, 1) for _ in range(n)))


for k in (1, 2):
    rng = random.Random(k)
    body = b"\x80\x02}(" + b"".join(rebuild(*tensor) for tensor in TENSORS) + b"u."
    with zipfile.ZipFile(f"{sys.argv[1]}/a.{k}.pt", "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("a/data.pkl", body)
        archive.writestr("a/version", "3\n")
        for storage, kind, n in sorted({(storage, kind, n) for _, storage, kind, n, _, _ in TENSORS}):
            archive.writestr(f"a/data/{storage}", numbers(rng, kind, n))
