#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Copies with replaced tensors, opened with torch and with Python's zipfile.

  tests/loadback_torch.py PROGRAM      needs torch; ends with status 77 where there is none

torch writes three checkpoints of one shape, the program averages them with weights that doubles
hold exactly, and torch loads the copy: each averaged tensor must be the weighted sum in float64,
rounded once, each other one and everything that is no tensor as in the newest file.
"""
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

try:
    import torch
except ImportError:
    print("skipped: torch is not importable (apt-get install python3-torch)")
    sys.exit(77)

WEIGHTS = [0.25, -0.5, 1.25]


def model(dtype):
    """Tensors of all the shapes that storages have: plain, strided, tied, expanded, empty, 0-d."""
    base = torch.randn(12, 10).to(dtype)
    tied = torch.randn(7, 5).to(dtype)
    return {
        "plain": torch.randn(33, 65).to(dtype),
        "large": torch.randn(300, 401).to(dtype),
        "transposed": torch.randn(40, 30).to(dtype).t(),
        "channels_last": torch.randn(4, 6, 5, 3).to(dtype).contiguous(
            memory_format=torch.channels_last),
        "even": base[:, 0::2],
        "odd": base[:, 1::2],
        "tied.a": tied,
        "tied.b": tied,
        "expanded": torch.randn(1, 9).to(dtype).expand(6, 9),
        "part_of_a_storage": torch.randn(100).to(dtype)[40:60],
        "scalar": torch.randn(()).to(dtype),
        "empty": torch.zeros(0, 3, dtype=dtype),
        "count": torch.tensor(7 + int(torch.randint(100, ()))),
        "mask": torch.randn(20) > 0,
    }


def average(tensors):
    """In float64 and this order, rounded once; integers from the newest."""
    if not tensors[0].is_floating_point():
        return tensors[-1]
    total = torch.zeros(tensors[0].shape, dtype=torch.float64)
    for weight, tensor in zip(WEIGHTS, tensors):
        total += weight * tensor.to(torch.float64)
    return total.to(tensors[0].dtype)


def agree(made, wanted, what):
    assert made.dtype == wanted.dtype and made.shape == wanted.shape, what
    if made.dtype == torch.float64:
        assert torch.allclose(made, wanted, rtol=1e-14, atol=1e-14), what
    else:
        assert torch.equal(made, wanted), what


def run(*arguments):
    subprocess.run([str(a) for a in arguments], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.PIPE, text=True)


def synth(program, work, files, out, *options):
    (work / "list.txt").write_text("".join(f"{file}\n" for file in files))
    (work / "weights.txt").write_text(
        "".join(f"{file} {weight}\n" for file, weight in zip(files, WEIGHTS)))
    run(program, "synth", "-q", "--name-regex", r"(?<time>[0-9]+)[.]\w+$", "--weights",
        work / "weights.txt", *options, f"@{work / 'list.txt'}", out)


def check_copy(newest, out):
    """Same length; a zip is sound."""
    assert newest.stat().st_size == out.stat().st_size, out
    if zipfile.is_zipfile(newest) and zipfile.ZipFile(newest).testzip() is None:
        assert zipfile.ZipFile(out).testzip() is None, out


def check(program, work, dtype, is_zip, name):
    work = work / f"{dtype}-{name}"
    work.mkdir()
    torch.manual_seed(1)
    states = [model(dtype) for _ in WEIGHTS]
    files = [work / f"{time}.{name}" for time in (100, 200, 300)]
    for state, file in zip(states, files):
        torch.save(state, file, _use_new_zipfile_serialization=is_zip)
    out = work / f"out.{name}"
    synth(program, work, files, out)
    made = torch.load(out, weights_only=True) if is_zip else torch.load(out)
    assert made.keys() == states[-1].keys()
    for key, tensor in made.items():
        agree(tensor, average([state[key] for state in states]), f"{out}: {key}")
    assert made["tied.a"].data_ptr() == made["tied.b"].data_ptr()
    assert made["transposed"].stride() == states[-1]["transposed"].stride()
    check_copy(files[-1], out)

    part = work / f"part.{name}"
    synth(program, work, files, part, "--include", "^plain$")
    made = torch.load(part)
    for key, tensor in made.items():
        wanted = average([s[key] for s in states]) if key == "plain" else states[-1][key]
        agree(tensor, wanted, f"{part}: {key}")
    check_copy(files[-1], part)
    print(f"{'zip' if is_zip else 'legacy'} {dtype}: {len(made)} tensors as computed by torch")


def check_lightning(program, work):
    torch.manual_seed(2)
    net = torch.nn.Sequential(torch.nn.Linear(8, 5), torch.nn.BatchNorm1d(5))
    optimizer = torch.optim.Adam(net.parameters())
    files, states = [], []
    for step in (100, 200, 300):
        for parameter in net.parameters():
            parameter.grad = torch.randn_like(parameter)
        optimizer.step()
        net(torch.randn(4, 8))
        state = {"epoch": 1, "global_step": step, "state_dict": net.state_dict(),
                 "optimizer_states": [optimizer.state_dict()], "hyper_parameters": {"lr": 1e-3}}
        files.append(work / f"{step}.ckpt")
        torch.save(state, files[-1])
        states.append(torch.load(files[-1]))
    out = work / "out.ckpt"
    synth(program, work, files, out)
    made = torch.load(out)
    for key, tensor in made["state_dict"].items():
        agree(tensor, average([s["state_dict"][key] for s in states]), key)
    assert made["global_step"] == 300 and made["hyper_parameters"] == {"lr": 1e-3}
    for index, moments in made["optimizer_states"][0]["state"].items():
        for key, tensor in moments.items():
            agree(tensor, states[-1]["optimizer_states"][0]["state"][index][key], key)
    net.load_state_dict(made["state_dict"])
    check_copy(files[-1], out)

    # averages of one file put into another: a safetensors file of the average into the first .ckpt
    plain, into = work / "plain.safetensors", work / "into.ckpt"
    synth(program, work, files, plain)
    synth(program, work, files, into, "--into", files[0])
    other = torch.load(into)
    assert other["global_step"] == 100
    for key, tensor in other["state_dict"].items():
        agree(tensor, made["state_dict"][key], key)
    check_copy(files[0], into)
    print("lightning: state_dict averaged, all else as it was")


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as work:
        for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
            check(program, Path(work), dtype, True, "pt")
            check(program, Path(work), dtype, False, "pth")
        check_lightning(program, Path(work))


main()
