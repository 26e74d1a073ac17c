# SPDX-License-Identifier: Apache-2.0
"""The lines that `posthoc-ema design` prints make a training store its design.

    tests/python/test_design.py PROGRAM LIBRARY [TEST...]
"""
import array
import importlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest

import torch

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PROGRAM, os.environ["POSTHOC_EMA_LIBRARY"] = (os.path.abspath(path) for path in sys.argv[1:3])
del sys.argv[1:3]
sys.path.insert(0, str(SOURCE / "python"))

import posthocema as ph  # noqa: E402
from posthocema.torch import Recorder  # noqa: E402


def save_file(tensors, path, metadata=None):
    """As that of safetensors.torch, which Debian does not have."""
    header, data = {"__metadata__": metadata or {}}, b""
    for name, tensor in tensors.items():
        assert tensor.dtype == torch.float32 and tensor.is_contiguous()
        end = len(data) + 4 * tensor.numel()
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [len(data), end]}
        data += array.array("f", tensor.flatten().tolist()).tobytes()
    text = json.dumps(header).encode()
    pathlib.Path(path).write_bytes(len(text).to_bytes(8, "little") + text + data)


sys.modules.setdefault("safetensors", types.ModuleType("safetensors"))
sys.modules["safetensors.torch"] = types.ModuleType("safetensors.torch")
sys.modules["safetensors.torch"].save_file = save_file


class Case(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(holder.name)
        torch.manual_seed(1)

    def phema(self, *arguments):
        return subprocess.run([PROGRAM, *arguments], check=True, stdout=subprocess.PIPE).stdout.decode()

    def design(self, *arguments):
        """Times, widths and printed lines."""
        options = ["--params", "2k", "--sigma-rel", "0.06:0.2", "--max-widths", "2", "--dtype", "f32", *arguments]
        found = json.loads(self.phema("design", "-q", "--json", *options))
        chosen = found["choices"][found["chosen"]]
        return chosen["times"], chosen["widths"], found["lines"]


class Loop(Case):
    """unit, end of the design, numbers of a step, what a time is divided by."""

    UNITS = [("steps", 400, 1, 1), ("images", 40_000, 96, 1), ("kimg", 100, 224, 1000), ("tokens", 3_000_000, 7_168, 1)]

    def train(self, lines, n_steps, size):
        """Runs the printed lines. Returns the exact average of width 0.1, whose steps have one length."""
        name = next((line.split(" = ...")[0] for line in lines.splitlines() if " = ..." in line), None)
        if name:
            with self.assertRaises(TypeError):  # a size that nobody has set is no size
                exec(lines + "record(1)\n", {"model": torch.nn.Linear(1, 1)})
            lines = lines.replace(" = ...", f" = {size}")
        model = torch.nn.Linear(40, 49)
        scope = {"model": model}
        exec(lines, scope)
        exact = None
        for step in range(1, n_steps + 1):
            with torch.no_grad():
                for p in model.parameters():  # EMA 0.05 and 0.10 are some percent apart
                    p.add_(torch.randn(p.shape) * (0.02 / n_steps) ** 0.5)
            scope["record"](step)
            held = model.weight.detach().double()
            beta = (1 - 1 / step) ** (ph.gamma(0.1) + 1)
            exact = held.clone() if exact is None else exact.mul_(beta).add_(held, alpha=1 - beta)
        scope["store"](n_steps)
        return exact

    def check(self, unit, until, size, divisor, extra):
        arguments = ["--until", str(until), "--unit", unit, "--disk", "200k"]
        times, widths, lines = self.design(*arguments)
        def now(step):
            return step * size / divisor

        n_steps = next(n for n in range(1, 10**6) if now(n) >= until) + extra
        exact = self.train(lines, n_steps, size)
        reached = {next((now(n) for n in range(1, n_steps + 1) if now(n) >= t), None) for t in times} - {None}
        reached.add(now(n_steps))
        with ph.open(".") as series:
            self.assertEqual(series.unit, unit)
            self.assertEqual({s.time for s in series.snapshots}, reached)
            self.assertEqual({round(s.sigma_rel, 4) for s in series.snapshots}, {round(w, 4) for w in widths})
            self.assertEqual(len(series), len(widths) * len(reached))
            with series.plan(0.1) as plan:
                self.assertNotEqual(plan.checks.verdict, "wrong", plan.checks.reason)
                self.assertEqual(plan.targets[0].time, now(n_steps))
                average = plan.tensor("weight", kind="torch").double()
                error = float((average - exact).norm() / exact.norm())
                self.assertLess(error, 3 * plan.targets[0].predicted_error + 1e-6)
        said = json.loads(self.phema("inspect", "-q", "--json", "."))
        self.assertEqual(said["unit"], unit)

    def test_all_times_and_the_end_are_stored_in_every_unit(self):
        for unit, until, size, divisor in self.UNITS:
            for extra in (0, 7, -9):  # the training ends with the design, later, or before it
                with self.subTest(unit=unit, extra=extra), tempfile.TemporaryDirectory() as directory:
                    os.chdir(directory)
                    self.check(unit, until, size, divisor, extra)
                    os.chdir("/")

    def test_a_resumed_training_stores_what_it_passes(self):
        times, _, lines = self.design("--until", "100", "--unit", "kimg", "--disk", "200k")
        scope = {"model": torch.nn.Linear(1, 1)}
        exec(lines.replace(" = ...", " = 224"), scope)
        halfway = 224
        for step in range(halfway + 1, 448):
            scope["record"](step)
        stored = {float(name.split("-")[1]) for name in os.listdir(".")}
        self.assertEqual(len(stored), sum(t > halfway * 0.224 for t in times))

    def test_the_times_come_from_a_file(self):
        for unit, until, size, divisor in self.UNITS:
            with self.subTest(unit=unit), tempfile.TemporaryDirectory() as directory:
                os.chdir(directory)
                times, widths, lines = self.design("--until", str(until), "--unit", unit, "--disk", "200k", "-o", "plan.json")
                self.assertIn("plan.json", lines)
                self.train(lines, next(n for n in range(1, 10**6) if n * size / divisor >= until), size)
                n = len(times) * len(widths)
                beside = json.loads(self.phema("inspect", "-q", "--json", "--design", "plan.json", "."))["design"]
                self.assertEqual((beside["planned"], beside["stored"], beside["missed"]), (n, n, []))
                model = torch.nn.Linear(1, 1)
                if unit == "steps":
                    self.assertIn("posthocema.torch.Recorder", lines)
                    self.assertEqual(Recorder(model, dir=".", design="plan.json").times, frozenset(times))
                else:  # the recorder would take them for steps
                    self.assertNotIn("Recorder", lines)
                    with self.assertRaisesRegex(ph.UsageError, f"expected times in steps, .* found {unit}"):
                        Recorder(model, dir=".", design="plan.json")
                os.chdir("/")


class Trainers(Case):
    """What the settings of a trainer store is what they were printed for. Those of torchtitan and EDM2 need GPUs."""

    def lines_of(self, trainer):
        times, _, lines = self.design("--trainer", trainer, "--until", "40", "--disk", "200k", "--input-sigma", self.WIDTHS[trainer])
        return times, lines

    WIDTHS = {"ema-pytorch": "0.05,0.1", "posthoc-ema": "0.05,0.1", "lightning": "0.05"}

    def need(self, module):
        try:
            return importlib.import_module(module)
        except ImportError:
            self.skipTest(f"{module} is not installed")

    def test_lightning(self):
        pl = self.need("lightning.pytorch")
        times, lines = self.lines_of("lightning")

        class Module(pl.LightningModule):
            def __init__(self):
                super().__init__()
                self.net = torch.nn.Linear(4, 4)

            def training_step(self, batch, _):
                return self.net(batch).square().mean()

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), lr=0.1)

        scope = {}
        exec(lines, scope)
        data = torch.utils.data.DataLoader(torch.randn(80, 4), batch_size=2)
        trainer = pl.Trainer(
            max_epochs=1, callbacks=scope["callbacks"], logger=False, enable_progress_bar=False, enable_model_summary=False,
            accelerator="cpu", default_root_dir=".",
        )  # fmt: skip
        trainer.fit(Module(), data)
        with ph.open("checkpoints") as series:
            self.assertEqual({s.named_time for s in series.snapshots}, set(times))

    def test_ema_pytorch(self):
        self.need("ema_pytorch")
        times, lines = self.lines_of("ema-pytorch")
        scope = {"model": torch.nn.Linear(4, 4), "torch": torch}
        exec(lines, scope)
        for _ in range(42):  # the lines have made the first update
            scope["ema"].update()
        scope["ema"].checkpoint()
        with ph.open("ckpts", update_every=1, input_sigma=[0.05, 0.1]) as series:
            self.assertEqual({s.named_time for s in series.snapshots}, {*times, 43})

    def test_posthoc_ema(self):
        self.need("posthoc_ema")
        times, lines = self.lines_of("posthoc-ema")
        scope = {"model": torch.nn.Linear(4, 4)}
        exec(lines, scope)
        for _ in range(39):  # the lines have made the first update
            scope["ema"].update_(scope["model"])
        with ph.open("ckpts", update_every=1, input_sigma=[0.05, 0.1]) as series:
            self.assertEqual({s.named_time for s in series.snapshots}, set(times))
            self.assertEqual(max(s.time for s in series.snapshots), 40)

    def test_trainers_that_count_steps_refuse_other_units(self):
        for trainer in ("ema-pytorch", "posthoc-ema", "torchtitan", "lightning"):
            for unit in ("images", "kimg", "tokens"):
                done = subprocess.run(
                    [PROGRAM, "design", "-q", "--trainer", trainer, "--unit", unit, "--until", "100", "--params", "1k",
                     "--disk", "1M", "--sigma-rel", "0.1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                )  # fmt: skip
                self.assertEqual((done.returncode, done.stdout), (2, b""))
                self.assertIn(f"--unit: {trainer} counts steps, found {unit}".encode(), done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=1)
