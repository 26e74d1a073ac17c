#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fp8 outputs with new scales, byte for byte as a second quantiser makes them.

  tests/fp8_bytes.py PROGRAM      Python's standard library alone

The series of fixtures/trainers/fp8_* and fixtures/scaled are averaged twice with the same weights:
into float32, and with --dtype same. The quantiser here makes codes and scales of the float32
numbers: a scale is the largest number of its block over 448, a code the nearest of all codes to
number / scale, ties to the even code. Both must agree in every byte. Numbers that are read back
must be near the truths of torch, and tensors that are copied or equal in all snapshots must keep
their bytes.
"""
import json
import math
import struct
import subprocess
import sys
import tempfile
from fractions import Fraction
from pathlib import Path

PROGRAM = sys.argv[1]
FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
PROJECTION = "model.layers.0.mlp.up_proj.weight"


def run(*arguments, status=0):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == status, f"{arguments}: {done.returncode}: {done.stderr}"
    return done.stdout + done.stderr


def read_safetensors(path):
    content = path.read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + size])
    header.pop("__metadata__", None)
    data = content[8 + size:]
    return {name: (entry["dtype"], entry["shape"], data[slice(*entry["data_offsets"])])
            for name, entry in header.items()}


def write_safetensors(path, tensors):
    header, at = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(t[2] for t in tensors.values()))


# ---- Numbers ----

def e4m3(code):
    sign, exponent, fraction = -1 if code & 128 else 1, code >> 3 & 15, code & 7
    if code & 127 == 127:
        return None
    if exponent == 0:
        return sign * Fraction(fraction, 512)
    return sign * Fraction(8 + fraction, 8) * Fraction(2) ** (exponent - 7)


POSITIVE = [e4m3(code) for code in range(127)]


def nearest_code(value):
    """The code of a float quotient: nearest, ties to the even code."""
    size = abs(Fraction(value))
    best = min(range(127), key=lambda code: (abs(POSITIVE[code] - size), code & 1))
    return best | (128 if math.copysign(1, value) < 0 else 0)


def f32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def bf16(value):
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    bits += 0x7fff + (bits >> 16 & 1)
    return struct.unpack("<f", struct.pack("<I", bits & 0xffff0000))[0]


def decode(dtype, data):
    if dtype == "F32":
        return list(struct.unpack(f"<{len(data) // 4}f", data))
    if dtype == "F64":
        return list(struct.unpack(f"<{len(data) // 8}d", data))
    if dtype == "BF16":
        return [struct.unpack("<f", b"\0\0" + data[i:i + 2])[0] for i in range(0, len(data), 2)]
    assert dtype in ("F8_E8M0", "U8"), dtype
    return [2.0 ** (byte - 127) for byte in data]


def new_scale(largest, dtype, is_power_of_two):
    scale = largest / 448 if largest else 1.0  # in double
    if is_power_of_two:
        scale = 2.0 ** math.ceil(math.log2(scale))
    rounded = bf16(f32(scale)) if dtype == "BF16" else f32(scale)
    return rounded or (2.0 ** -133 if dtype == "BF16" else 2.0 ** -149)


def place_of(i, shape, scale_shape, block):
    wide = scale_shape[-1] if len(scale_shape) == 2 else 1
    return i // shape[1] // block[0] * wide + i % shape[1] // block[1]


def quantise(numbers, shape, scale_shape, block, dtype, is_power_of_two):
    largest = {}
    place = [place_of(i, shape, scale_shape, block) for i in range(math.prod(shape))]
    for i, number in enumerate(numbers):
        largest[place[i]] = max(largest.get(place[i], 0), abs(number))
    scales = [new_scale(largest[s], dtype, is_power_of_two) for s in range(math.prod(scale_shape))]
    return bytes(nearest_code(number / scales[place[i]]) for i, number in enumerate(numbers)), scales


# ---- Series ----

def check_series(series, block, is_power_of_two, temporary, truth=None):
    snapshots = sorted(p for p in series.iterdir() if p.name.startswith(("checkpoint", "snapshot")))
    weights = temporary / f"{series.name}.txt"
    weights.write_text("".join(f"{p.name} {1 / len(snapshots):.17g}\n" for p in snapshots))
    options = ["--quiet", "--no-sync", "--force", "--weights", weights, series]
    wide, out = temporary / "wide.safetensors", temporary / f"{series.name}-same"
    run("synth", "--dtype", "f32", *options, wide)
    is_sharded = snapshots[0].is_dir()
    target = f"{out}/" if is_sharded else f"{out}.safetensors"
    shards = ["--shard-size", "1M"] if is_sharded else []
    run("synth", "--dtype", "same", *shards, *options, target)
    path = next(out.glob("*.safetensors")) if is_sharded else Path(target)
    if is_sharded and block and block[0] != 128:
        assert (out / "config.json").read_bytes() == (snapshots[0] / "config.json").read_bytes()
    numbers, codes = read_safetensors(wide), read_safetensors(path)
    one = read_safetensors(next(snapshots[0].glob("*.safetensors")) if is_sharded else snapshots[0])
    assert {n: t[:2] for n, t in codes.items()} == {n: t[:2] for n, t in one.items()}, series
    n_scaled = 0
    for name, (dtype, shape, data) in one.items():
        scale = next((s for s in (f"{name}_scale_inv", f"{name}_scale") if s in one), None)
        if dtype != "F8_E4M3" or not scale:
            continue
        n_scaled += 1
        scale_dtype, scale_shape, _ = one[scale]
        blocks = block
        if math.prod(scale_shape) == 1:
            blocks = shape
        elif scale_shape == [shape[0], 1]:
            blocks = [1, shape[1]]
        values = decode("F32", numbers[name][2])
        expected, scales = quantise(values, shape, scale_shape, blocks, scale_dtype,
                                    is_power_of_two or scale_dtype in ("F8_E8M0", "U8"))
        assert decode(scale_dtype, codes[scale][2]) == scales, f"{series}: {scale}"
        assert codes[name][2] == expected, f"{series}: {name}"
        for i, true in enumerate(decode(*truth[name][::2]) if truth else []):
            scale_of_i = scales[place_of(i, shape, scale_shape, blocks)]
            error = abs(float(e4m3(codes[name][2][i])) * scale_of_i - true)
            # half a step of three bits, or of the smallest numbers of the block
            assert error <= max(abs(true) / 16, scale_of_i / 1024) * 1.001, f"{series}: {name}: {i}"
    assert n_scaled
    run("verify", "--quiet", out if is_sharded else path)
    for extra in (["--io", "mmap", "--threads", "1"], ["--io", "read", "--threads", "3"],
                  ["--resume"]):
        again = temporary / "again"
        run("synth", "--dtype", "same", *shards, *extra, *options,
            f"{again}/" if is_sharded else f"{again}.safetensors")
        other = next(again.glob("*.safetensors")) if is_sharded else Path(f"{again}.safetensors")
        assert read_safetensors(other) == codes, f"{series}: {extra}"
    run("synth", "--dtype", "same", "--part", "1/2", *options, temporary / "part/", status=2)


def check_forms(temporary):
    """Distributed and compressed checkpoints, copies of them and of a file: the same tensors."""
    series = FIXTURES / "trainers" / "fp8_block"
    weights = temporary / "forms.txt"
    weights.write_text("checkpoint-100 0.5\ncheckpoint-200 0.5\n")
    options = ["--quiet", "--no-sync", "--force", "--dtype", "same", "--weights", weights]
    same = temporary / "same.safetensors"
    run("synth", *options, series, same)
    expected = read_safetensors(same)
    for form, ranks in (("dcp", ["--ranks", "2"]), ("zst", [])):
        folder = temporary / form
        folder.mkdir()
        for time in (100, 200):
            out = folder / f"checkpoint-{time}"
            if form == "zst":
                out.mkdir()
                out /= "model.safetensors.zst"
            run("synth", "--quiet", "--no-sync", "--convert", *ranks,
                series / f"checkpoint-{time}" / "model.safetensors", out)
        again = temporary / f"{form}.safetensors"
        run("synth", *options, folder, again)
        assert read_safetensors(again) == expected, form
        run("verify", "--quiet", again)
        for dtype in ("f32", "bf16"):
            for source in (series, folder):
                run("synth", *options, "--dtype", dtype, source, temporary / f"{source.name}.safetensors")
            wide = read_safetensors(temporary / f"{form}.safetensors")
            assert wide == read_safetensors(temporary / f"{series.name}.safetensors"), (form, dtype)
    out = temporary / "copy"
    run("synth", *options, "--into", temporary / "dcp" / "checkpoint-200", temporary / "dcp", out)
    run("diff", "--quiet", out, same)
    run("verify", "--quiet", out)
    copy = temporary / "copy.safetensors"
    run("synth", *options, "--into", series / "checkpoint-200" / "model.safetensors", series, copy)
    assert read_safetensors(copy) == expected
    for name, ranks in (("ranks", ["--ranks", "2"]), ("same.safetensors.zst", [])):
        run("synth", *options, *ranks, series, temporary / name)
        run("diff", "--quiet", temporary / name, same)
        run("verify", "--quiet", temporary / name)


def check_kept_bytes(temporary):
    """Codes that a rule copies, and that are equal in all snapshots."""
    series = FIXTURES / "scaled" / "channel"
    snapshots = sorted(series.iterdir())
    newest = read_safetensors(snapshots[-1])
    out = temporary / "kept.safetensors"
    run("synth", "--quiet", "--no-sync", "--dtype", "same", "--sigma-rel", "0.1", "--rule",
        "proj.weight$=copy", series, out)
    kept = read_safetensors(out)
    assert all(kept[n] == newest[n] for n in newest if "proj" in n)
    assert any(kept[n] != newest[n] for n in newest)
    equal = temporary / "equal"
    equal.mkdir()
    # scales that no quantiser of ours would make, a row of zeros, and a code of NaN
    one = dict(newest)
    dtype, shape, data = one[PROJECTION]
    one[PROJECTION] = (dtype, shape, bytes([1, 2, 3, 0x80]) + data[4:8] + bytes(8) + b"\x7f" + data[17:])
    scales = one[PROJECTION + "_scale"]
    one[PROJECTION + "_scale"] = (scales[0], scales[1], struct.pack("<4f", 3.14, 1e-3, 7, 0.1))
    for snapshot in snapshots:
        write_safetensors(equal / snapshot.name, one)
    run("synth", "--quiet", "--no-sync", "--force", "--dtype", "same", "--sigma-rel", "0.1", equal, out)
    assert read_safetensors(out) == one


def check_rounds_of_zeros(temporary):
    """Rows of zeros, of one large number, and of the smallest numbers of float32."""
    series = temporary / "odd"
    series.mkdir()
    one = read_safetensors(sorted((FIXTURES / "scaled" / "channel").iterdir())[-1])
    dtype, shape, _ = one[PROJECTION]
    scales = one[PROJECTION + "_scale"]
    for k, (time, largest) in enumerate((("0001000", 0x7e), ("0002000", 0x70))):
        codes = bytes(8) + bytes([largest] + [0] * 7) + bytes([0x38 + k] * 8) + bytes([0x7e, k] * 4)
        one[PROJECTION] = (dtype, shape, codes)
        one[PROJECTION + "_scale"] = (scales[0], scales[1], struct.pack("<4f", 5, 1e30, 1e-45, 1))
        write_safetensors(series / f"snapshot-{time}-0.050.safetensors", one)
    check_series(series, None, False, temporary)


def check_distributed(temporary):
    """Codes and scales in zips of boxes: the same bytes as of the safetensors files."""
    for name in ("fp8_block", "fp8_tensor", "fp8_ue8m0"):
        series = temporary / f"{name}_distributed"
        series.mkdir()
        checkpoints = sorted((FIXTURES / "trainers" / name).glob("checkpoint-*"),
                             key=lambda path: int(path.name.split("-")[1]))
        for checkpoint in checkpoints:
            newest = series / checkpoint.name.replace("checkpoint", "step")
            run("synth", "-q", "--convert", "--ranks", 2, checkpoint, newest)
        average = ("synth", "-qf", "--input-profile", "raw", "--profile", "sma:2", "--dtype", "same")
        run(*average, FIXTURES / "trainers" / name, temporary / "wanted.safetensors")
        wanted = read_safetensors(temporary / "wanted.safetensors")
        run(*average, series, temporary / "found.safetensors")
        assert read_safetensors(temporary / "found.safetensors") == wanted
        for form in (("--ranks", 3), ("--into", newest)):
            out = temporary / f"{name}_{form[0][2:]}"
            run(*average, *form, series, out)
            run("verify", out)
            run("synth", "-qf", "--convert", out, temporary / "back.safetensors")
            assert read_safetensors(temporary / "back.safetensors") == wanted, (name, form)


def check_container(temporary):
    """Raw parameters and an average of them in one file, both codes with scales."""
    series = temporary / "container"
    series.mkdir()
    numbers, names = [0.0] * 16, []
    for step, scale in ((100, 0.5), (200, 1.0)):
        tensors = {}
        for k, prefix in enumerate(("net", "net_ema")):
            codes = bytes([0x38, 0x40, 0xb8, 0x30, 0, 0x34, 0xc0, 0x38][(i * (k + 3) + step) % 8]
                          for i in range(16))
            tensors[f"{prefix}.a.weight"] = ("F8_E4M3", [4, 4], codes)
            tensors[f"{prefix}.a.weight_scale"] = ("F32", [1], struct.pack("<f", scale))
            numbers = [n + float(e4m3(c)) * scale / 4 for n, c in zip(numbers, codes)]
        write_safetensors(series / f"s-{step}.safetensors", tensors)
        names += [f"s-{step}.safetensors:raw 0.25", f"s-{step}.safetensors:ema 0.25"]
    (temporary / "weights.txt").write_text("\n".join(names) + "\n")
    regex = ("--name-regex", "s-(?<time>[0-9]+)")
    run("synth", "-qf", *regex, "--weights", temporary / "weights.txt", series,
        temporary / "average.safetensors")
    found = read_safetensors(temporary / "average.safetensors")
    wanted = b"".join(struct.pack("<f", n)[2:] for n in numbers)  # exact in bfloat16
    assert found == {"a.weight": ("BF16", [4, 4], wanted)}, found
    text = run("synth", "-qf", *regex, "--sigma-rel", "0.1", "--dtype", "same", series,
               temporary / "none.safetensors", status=2)
    assert "its scale takes no part, which --dtype same writes anew; give --dtype bf16" in text, text


with tempfile.TemporaryDirectory() as folder:
    folder = Path(folder)
    for name, block, is_power_of_two in (("fp8_block", [128, 128], False), ("fp8_block16", [16, 16], False),
                                         ("fp8_tensor", None, False), ("fp8_ue8m0", [128, 128], True)):
        series = FIXTURES / "trainers" / name
        check_series(series, block, is_power_of_two, folder,
                     read_safetensors(series / "truth_mean.safetensors"))
    check_series(FIXTURES / "scaled" / "channel", None, False, folder)
    check_forms(folder)
    check_kept_bytes(folder)
    check_rounds_of_zeros(folder)
    check_distributed(folder)
    check_container(folder)
print("equal")
