#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Copies with replaced tensors, opened with torch and with Python's zipfile.

  tests/loadback_torch.py PROGRAM      needs torch; ends with status 77 where there is none

torch writes three checkpoints of one shape, the program averages them with weights that doubles
hold exactly, and torch loads the copy: each averaged tensor must be the weighted sum in float64,
rounded once, each other one and everything that is no tensor as in the newest file.
"""
import inspect
import pickle
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

try:
    import torch
except ImportError:
    print("skipped: torch is not importable; to run it: apt-get install python3-torch")
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


def opens(file, way):
    try:
        torch.load(file, **way)
        return True
    except pickle.UnpicklingError:
        return False


def load(file, newest):
    """In all the ways that this torch has for the file it is a copy of; they must agree."""
    ways = [{"weights_only": False}]
    if opens(newest, {"weights_only": True}):  # torch 1.13 knows no floats there
        ways.append({"weights_only": True})
    if "mmap" in inspect.signature(torch.load).parameters and zipfile.is_zipfile(newest):
        ways.append({"mmap": True})
    made = [torch.load(file, **way) for way in ways]
    for other in made[1:]:
        same(made[0], other, file)
    return made[0]


def same(a, b, what):
    """Trees of dicts and lists with equal leaves."""
    if isinstance(a, torch.Tensor):
        agree(a, b, what)
        assert a.stride() == b.stride(), what
    elif isinstance(a, dict):
        assert a.keys() == b.keys(), what
        for key in a:
            same(a[key], b[key], f"{what}: {key}")
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b), what
        for x, y in zip(a, b):
            same(x, y, what)
    else:
        assert a == b, what


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
    made = load(out, files[-1])
    assert made.keys() == states[-1].keys()
    for key, tensor in made.items():
        agree(tensor, average([state[key] for state in states]), f"{out}: {key}")
    assert made["tied.a"].data_ptr() == made["tied.b"].data_ptr()
    assert made["transposed"].stride() == states[-1]["transposed"].stride()
    check_copy(files[-1], out)

    part = work / f"part.{name}"
    synth(program, work, files, part, "--include", "^plain$")
    made = load(part, files[-1])
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
    made = load(out, files[-1])
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
    other = load(into, files[0])
    assert other["global_step"] == 100
    for key, tensor in other["state_dict"].items():
        agree(tensor, made["state_dict"][key], key)
    check_copy(files[0], into)
    print("lightning: state_dict averaged, all else as it was")


def check_wrapped(program, work):
    """What DataParallel saves, below a key, beside an optimizer; the other entries stay."""
    torch.manual_seed(3)
    net = torch.nn.DataParallel(torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.PReLU()))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    files, states = [], []
    for epoch in (100, 200, 300):
        for parameter in net.parameters():
            parameter.grad = torch.randn_like(parameter)
        optimizer.step()
        files.append(work / f"{epoch}.pth")
        torch.save({"epoch": epoch, "best": (0.5, None), "model": net.state_dict(),
                    "optimizer": optimizer.state_dict()}, files[-1])
        states.append(torch.load(files[-1]))
    out = work / "out.pth"
    synth(program, work, files, out)
    made = load(out, files[-1])
    for key, tensor in made["model"].items():
        assert key.startswith("module."), key
        agree(tensor, average([s["model"][key] for s in states]), key)
    same({**made, "model": None}, {**states[-1], "model": None}, out)
    net.load_state_dict(made["model"])
    check_copy(files[-1], out)
    print("wrapped: model averaged, all else as it was")


def check_views(program, work, is_zip):
    """A flat buffer of which all parameters are views, as optimizers with flat storage keep them;
    one replaced view must leave its neighbours alone."""
    work = work / f"views-{is_zip}"
    work.mkdir()
    torch.manual_seed(4)
    files, flats = [], [torch.randn(300 * 1000) for _ in WEIGHTS]
    for time, flat in zip((100, 200, 300), flats):
        views = {f"p{i}": flat[i * 1000:(i + 1) * 1000].view(25, 40) for i in range(300)}
        files.append(work / f"{time}.pt")
        torch.save(views, files[-1], _use_new_zipfile_serialization=is_zip)
    wanted = average(flats).view(300, 25, 40)
    for out, chosen in (("all.pt", range(300)), ("one.pt", [7])):
        options = ["--include", "^p7$"] if len(chosen) == 1 else []
        synth(program, work, files, work / out, *options)
        made = load(work / out, files[-1])
        for i in range(300):
            expected = wanted[i] if i in chosen else flats[-1][i * 1000:(i + 1) * 1000].view(25, 40)
            agree(made[f"p{i}"], expected, f"{out}: p{i}")
        assert len({view.storage().data_ptr() for view in made.values()}) == 1
        check_copy(files[-1], work / out)
    print(f"{'zip' if is_zip else 'legacy'}: 300 views of one storage")


def make(work, name):
    path = Path(work) / name
    path.mkdir()
    return path


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as work:
        for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
            check(program, Path(work), dtype, True, "pt")
            check(program, Path(work), dtype, False, "pth")
        check_lightning(program, make(work, "lightning"))
        check_wrapped(program, make(work, "wrapped"))
        check_views(program, Path(work), True)
        check_views(program, Path(work), False)


main()
