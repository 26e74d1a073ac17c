#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trainings of torch with torch.optim.swa_utils.AveragedModel: what its files tell of the decay.

  tests/decays_torch.py PROGRAM      needs torch; ends with status 77 where there is none

The decay that was given to torch is found within 5 %, and a right one is never refused. A resume that restores the model
but not its average, as many scripts do, is named with its step, and the command that is proposed runs. Of an average
that is updated every 10 steps the counter inside tells it.
"""
import json
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import torch
    from torch.optim.swa_utils import AveragedModel
except ImportError:
    print("skipped: torch is not importable; to run it: apt-get install python3-torch")
    sys.exit(77)

APART, N_TIMES = 50, 10


def make_average(model, decay):
    """The first update copies the model, as in any version of torch."""
    return AveragedModel(model, avg_fn=lambda old, new, n_averaged: decay * old + (1 - decay) * new)


def make_optimizer(name, parameters):
    if name == "adamw":
        return torch.optim.AdamW(parameters, lr=1e-3)
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9 if name == "momentum" else 0)


def train(folder, decay, optimizer, dtype, seed, resumed_at=None, every=1, phase=0):
    """Writes step-N.pt = {model, ema}. After resumed_at the average begins as a copy of the model. Updated every few
    steps, the average is stored with its counter.
    """
    torch.manual_seed(seed)
    layers = [torch.nn.Linear(16, 48), torch.nn.GELU(), torch.nn.LayerNorm(48), torch.nn.Linear(48, 4)]
    model = torch.nn.Sequential(*layers)
    teacher = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.Tanh(), torch.nn.Linear(64, 4))
    steps = make_optimizer(optimizer, model.parameters())
    average = make_average(model, decay)
    for step in range(1, APART * N_TIMES + 1):
        x = torch.randn(32, 16)
        with torch.no_grad():
            y = teacher(x) + 0.3 * torch.randn(32, 4)
        loss = ((model(x) - y) ** 2).mean()
        steps.zero_grad()
        loss.backward()
        steps.step()
        if step % every == phase:
            average.update_parameters(model)
        if step == resumed_at:
            average = make_average(model, decay)
            average.update_parameters(model)
        if step % APART == 0:
            torch.save({name: {key: value.to(dtype) for key, value in part.state_dict().items()}
                        for name, part in (("model", model), ("ema", average.module if every == 1 else average))}, folder / f"step-{step}.pt")
    return folder


def run(program, *arguments):
    return subprocess.run([program, *arguments], capture_output=True, text=True)


def check(program, folder, decay, optimizer, dtype, seed):
    series = str(train(folder / "right", decay, optimizer, dtype, seed))
    found = json.loads(run(program, "inspect", "--json", series).stdout)["decays"][0]
    true = torch.log(torch.tensor(0.5, dtype=float)).item() / torch.log(torch.tensor(decay, dtype=float)).item()
    assert found["kind"] == "steady" and abs(found["half_life"] / true - 1) < 0.05, (found, true)
    out = str(folder / "out.safetensors")
    options = ["-qf", "--sigma-rel", "0.15", "--input-profile", f"ema:decay={decay}"]
    right = run(program, "synth", *options, series, out)
    assert right.returncode == 0, right.stderr
    wrong = run(program, "synth", "-qf", "--sigma-rel", "0.15", "--input-profile", "ema:decay=0.9", series, out)
    assert wrong.returncode == 4, wrong.stderr

    series = str(train(folder / "resumed", decay, optimizer, dtype, seed, resumed_at=230))
    refused = run(program, "synth", *options, series, out)
    assert refused.returncode == 4, refused.stderr
    at = int(re.search(r"became a copy of them near (\d+);", refused.stderr).group(1))
    assert 220 <= at <= 240, refused.stderr
    proposed = re.search(r"try: posthoc-ema (.*)", refused.stderr).group(1)
    followed = run(program, *shlex.split(proposed))
    assert followed.returncode == 0, followed.stderr


def check_updates(program, folder, phase):
    series = str(train(folder, 0.9, "momentum", torch.float32, 7, every=10, phase=phase))
    found = json.loads(run(program, "inspect", "--json", series).stdout)["decays"][0]
    assert found["fits"] in ("averaged-model:decay=0.9,every=10", "averaged-model:decay=0.9,every=10,phase=1"), found
    options = ["-f", "--sigma-rel", "0.15", "--input-profile", "auto"]
    made = run(program, "synth", *options, series, str(folder / "out.safetensors"))
    assert made.returncode == 0 and "rises" not in made.stderr, made.stderr


def main():
    program = sys.argv[1]
    for phase in (0, 1):
        with tempfile.TemporaryDirectory() as name:
            check_updates(program, Path(name), phase)
        print(f"updated every 10 steps, from step {phase or 10} on: found")
    cases = [(0.99, "adamw", torch.float32), (0.998, "sgd", torch.float16), (0.99, "momentum", torch.bfloat16)]
    for seed, (decay, optimizer, dtype) in enumerate(cases):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "right").mkdir()
            (folder / "resumed").mkdir()
            check(program, folder, decay, optimizer, dtype, seed)
        print(f"decay {decay}, {optimizer}, {dtype}: found, and the resume that lost the average")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
