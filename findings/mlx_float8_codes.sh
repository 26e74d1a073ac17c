#!/usr/bin/env bash
# MLX reads tensors of F8_E4M3 in safetensors files as uint8, and saves them as U8.
#
# One would guess float values, or an error, as there is for F8_E5M2. The tensors arrive as their codes, without a warning: 1.0 is
# 56. An average of two checkpoints is one of codes: 1 and 4 give 2, not 2.5. Saved again, they are integers for every other
# reader. mlx.core.from_fp8 decodes them. F8_E8M0, the dtype of block scales, is read alike.
# Seen with MLX 0.32.4 (its CPU version for Linux), safetensors 0.8.0 and ml_dtypes 0.6.0.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -q 'mlx[cpu]==0.32.4' safetensors==0.8.0 ml_dtypes==0.6.0 numpy==2.2.6
venv/bin/python - <<'END' | tee found
import json
import ml_dtypes, mlx.core as mx, numpy, safetensors.numpy


def dtype_in(path):
    data = open(path, "rb").read()
    return json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["w"]["dtype"]


def write(path, value, dtype):
    safetensors.numpy.save_file({"w": numpy.array([value], dtype)}, path)
    return f"{dtype_in(path)} {value}"


codes = []
for value in (1, 4):
    name = write("a.safetensors", value, ml_dtypes.float8_e4m3fn)
    codes.append(mx.load("a.safetensors")["w"])
    print(f"{name}: read as {codes[-1].dtype} {codes[-1].item()}, which from_fp8 decodes to {mx.from_fp8(codes[-1]).item()}")
mean = numpy.array([mx.mean(mx.stack(codes)).item()], "u1")
print(f"mean of the codes: {mean[0]}, code of {mean.view(ml_dtypes.float8_e4m3fn)[0]}")
mx.save_safetensors("b.safetensors", mx.load("a.safetensors"))
print("saved again:", dtype_in("b.safetensors"))
for dtype in (ml_dtypes.float8_e8m0fnu, ml_dtypes.float8_e5m2):
    name = write("c.safetensors", 1, dtype)
    try:
        print(f"{name}: read as", mx.load("c.safetensors")["w"].dtype)
    except RuntimeError:
        print(f"{name}: an error")
END
diff found - <<'END'
F8_E4M3 1: read as mlx.core.uint8 56, which from_fp8 decodes to 1.0
F8_E4M3 4: read as mlx.core.uint8 72, which from_fp8 decodes to 4.0
mean of the codes: 64, code of 2.0
saved again: U8
F8_E8M0 1: read as mlx.core.uint8
F8_E5M2 1: an error
END
