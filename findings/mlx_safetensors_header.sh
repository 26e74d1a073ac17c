#!/usr/bin/env bash
# MLX writes "__metadata__":null into each safetensors file that is saved without metadata, and does not pad the header.
#
# The format's description knows the key as an object of strings. The library of safetensors reads null as no metadata, and
# refuses other values that are no object. Headers are padded with spaces by that library, so that data begin at a multiple of 8;
# those of MLX begin anywhere, and a view of them as float32 is unaligned.
# Seen with MLX 0.32.4 (its CPU version for Linux) and safetensors 0.8.0.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -q 'mlx[cpu]==0.32.4' safetensors==0.8.0 numpy==2.2.6
venv/bin/python - <<'END' | tee found
import json, struct
import mlx.core as mx, numpy, safetensors, safetensors.numpy

def show(name, path):
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8 : 8 + size])
    with safetensors.safe_open(path, "numpy") as file:
        read = file.metadata()
    print(f"{name}: __metadata__ {json.dumps(head.get('__metadata__', 'absent'))}, read as {read}; data at {8 + size}")

mx.save_safetensors("a.safetensors", {"w": mx.arange(4, dtype=mx.float32)})
safetensors.numpy.save_file({"w": numpy.arange(4, dtype="f4")}, "b.safetensors")
show("MLX", "a.safetensors")
show("safetensors", "b.safetensors")
END
diff found - <<'END'
MLX: __metadata__ null, read as None; data at 83
safetensors: __metadata__ "absent", read as None; data at 64
END
