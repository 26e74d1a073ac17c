# SPDX-License-Identifier: Apache-2.0
"""Recorder: real trainings with torch, resumed by a new process, against averages in float64.

    tests/python/test_recorder.py PROGRAM LIBRARY
"""
import copy
import errno
import io
import itertools
import json
import os
import pathlib
import pickle
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
import unittest
import unittest.mock

SOURCE = pathlib.Path(__file__).resolve().parents[2]
os.environ["POSTHOC_EMA_LIBRARY"] = os.path.abspath(sys.argv[2])
ARGUMENTS = [os.path.abspath(__file__), *(os.path.abspath(a) for a in sys.argv[1:3])]
CHILD = sys.argv[3:]
del sys.argv[1:]
sys.path.insert(0, str(SOURCE / "python"))

import torch  # noqa: E402

import posthocema as ph  # noqa: E402
from posthocema import _files, torch as recorder_module  # noqa: E402
from posthocema._snapshot_files import find_snapshots  # noqa: E402
from posthocema.torch import Recorder  # noqa: E402

STEPS, EVERY = 200, 10
torch.set_num_threads(1)  # a forked process has no other


class Model(torch.nn.Module):
    """Moving, frozen and tied parameters, an integer buffer."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(8, 16)
        self.tied = torch.nn.Linear(16, 16, bias=False)
        self.again = torch.nn.Linear(16, 16, bias=False)
        self.again.weight = self.tied.weight
        self.frozen = torch.nn.Linear(16, 4)
        self.frozen.requires_grad_(False)
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        self.count += 1
        return self.frozen(self.again(torch.tanh(self.tied(torch.relu(self.first(x))))))


def tensors_of(path):
    """Names to dtype, shape and bytes of a safetensors file, whose size has to fit."""
    data = pathlib.Path(path).read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    del header["__metadata__"]
    assert end + max(t["data_offsets"][1] for t in header.values()) == len(data), path
    return {n: (t["dtype"], tuple(t["shape"]), data[end:][slice(*t["data_offsets"])]) for n, t in header.items()}


class Training:
    def __init__(self, directory, dtype, width=torch.float32, **options):
        torch.manual_seed(1)
        self.model = Model().to(width)
        moving = [p for p in self.model.parameters() if p.requires_grad]
        self.optimizer = torch.optim.SGD(moving, lr=0.05, momentum=0.9)
        if "design" not in options:
            options = {"widths": (0.05, 0.10), "every": EVERY, "dtype": dtype, **options}
        if "times" in options:
            options["every"] = 0
        self.recorder = Recorder(self.model, dir=directory, **options)
        self.truth, self.truth_width = {}, 0.08

    def advance(self, first, last):
        for step in range(first, last + 1):
            torch.manual_seed(1000 + step)
            x = torch.randn(32, 8, dtype=next(self.model.parameters()).dtype)
            loss = ((self.model(x).float() - x[:, :4].float().sin()) ** 2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.recorder.step()
            weight = 1 - (1 - 1 / step) ** (ph.gamma(self.truth_width) + 1)
            for name, tensor in self.model.state_dict().items():
                old = self.truth.setdefault(name, torch.zeros_like(tensor, dtype=torch.float64))
                old += weight * (tensor.double() - old)

    def save(self, path):
        torch.save([self.model.state_dict(), self.optimizer.state_dict(), self.recorder.state_dict(), self.truth], path)

    def load(self, path):
        model, optimizer, recorder, self.truth = torch.load(path)
        self.model.load_state_dict(model)
        self.optimizer.load_state_dict(optimizer)
        self.recorder.load_state_dict(recorder)


DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


def die_at(n, report):
    """Lets this process be killed at the nth write, sync or rename of snapshots, whose kind it reports."""
    count = 0

    def counting(kind, call):
        def counted(*arguments):
            nonlocal count
            count += 1
            if count == n:
                os.write(report, kind.encode())
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*arguments)

        return counted

    class File(io.FileIO):
        def write(self, data):
            return counting("write", super().write)(data)

    os.fdopen = File
    os.fsync, os.link, os.unlink = counting("fsync", os.fsync), counting("link", os.link), counting("unlink", os.unlink)


def replay(directory):
    """A training without gradients, for which torch refuses forked processes."""
    torch.manual_seed(1)
    model = Model()
    recorder = Recorder(model, dir=directory, every=10)
    recorder.run_id = "the same"
    for _ in range(20):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter += torch.randn_like(parameter)
        recorder.step()


def train_until(directory, n):
    """That in a process of its own. Returns its status, and where it ended."""
    reader, report = os.pipe()
    child = os.fork()
    if not child:
        try:
            die_at(n, report)
            replay(directory)
            os.write(report, b"finished")
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        os._exit(1)
    os.close(report)
    status = os.waitpid(child, 0)[1]
    with os.fdopen(reader) as said:
        return status, said.read()


if CHILD:  # half of a training: DIRECTORY DTYPE MODEL_DTYPE FIRST LAST STATE
    directory, dtype, model_dtype, first, last, state = CHILD
    training = Training(directory, DTYPES[dtype], DTYPES[model_dtype])
    if first != "1":
        training.load(state)
    training.advance(int(first), int(last))
    training.save(state)
    sys.exit()


class Recording(unittest.TestCase):
    def setUp(self):
        self.holder = tempfile.TemporaryDirectory()
        self.addCleanup(self.holder.cleanup)
        self.dir = pathlib.Path(self.holder.name)

    def train(self, name, dtype, model_dtype, stops):
        """The directory of snapshots and the truth of a training that new processes continue."""
        directory, state = self.dir / name, self.dir / (name + ".pt")
        first = 1
        for last in stops:
            subprocess.run(
                [sys.executable, *ARGUMENTS, directory, dtype, model_dtype, str(first), str(last), state], check=True
            )
            first = last + 1
        return directory, torch.load(state)[3]

    def error(self, directory, truth):
        with ph.open(directory) as series, series.plan(0.08) as plan:
            made = plan.state_dict(dtype="f32", kind="torch")
        averaged = [name for name in truth if name != "count"]
        self.assertEqual(int(made["count"]), STEPS)
        self.assertTrue(torch.equal(made["tied.weight"], made["again.weight"]))
        difference = sum(float(((made[n].double() - truth[n]) ** 2).sum()) for n in averaged)
        return (difference / sum(float((truth[n] ** 2).sum()) for n in averaged)) ** 0.5, made

    def test_large_tensors_are_updated_in_pieces(self):
        """Whatever their strides. The averages are those of whole tensors, to the last bit."""
        for dtype in (torch.float32, torch.bfloat16):
            torch.manual_seed(1)
            model = torch.nn.Module()
            for name, value in {
                "rows": torch.randn(9, 5, 7), "flat": torch.randn(300), "few": torch.randn(3), "one": torch.randn(()),
                "none": torch.randn(0, 4), "turned": torch.randn(20, 30).t(), "wide": torch.randn(1, 400),
                "last": torch.randn(16, 8, 3, 3).to(memory_format=torch.channels_last),
            }.items():  # fmt: skip
                model.register_parameter(name, torch.nn.Parameter(value.to(dtype)))
            recorders = [Recorder(model, every=0)]
            with unittest.mock.patch.dict(recorder_module._CHUNK_ELEMS, processor=80):
                recorders.append(Recorder(model, every=0))
            sizes = [[piece.numel() for piece in recorder._held[0]] for recorder in recorders]
            self.assertEqual((len(sizes[0]), max(sizes[0])), (8, 1152))
            self.assertEqual(sum(sizes[1]), sum(sizes[0]))
            self.assertEqual(sorted(sizes[1])[-2:], [80, 400])  # a row is the least
            for _ in range(40):
                with torch.no_grad():
                    for parameter in model.parameters():
                        parameter.add_(torch.randn_like(parameter), alpha=0.01)
                for recorder in recorders:
                    recorder.step()
            for width in recorders[0].widths:
                whole, cut = (recorder.average(width) for recorder in recorders)
                for name in whole:
                    self.assertTrue(torch.equal(whole[name], cut[name]), name)

    def test_averages_of_a_resumed_training_are_the_true_ones(self):
        directory, truth = self.train("f32", "f32", "f32", [97, STEPS])
        with ph.open(directory) as series:
            self.assertEqual(len(series), 2 * STEPS // EVERY)
            self.assertEqual(series.unit, "steps")
        error, made = self.error(directory, truth)
        self.assertLess(error, 1e-5)
        torch.manual_seed(1)
        self.assertTrue(torch.equal(made["frozen.weight"], Model().frozen.weight))
        once, _ = self.train("once", "f32", "f32", [STEPS])
        for path in directory.iterdir():  # a run that was not interrupted has the same tensors
            same = [p.read_bytes().split(b"}}", 1)[1] for p in (path, once / path.name)]
            self.assertEqual(same[0], same[1], path.name)

    def test_snapshots_are_the_power_function_averages(self):
        training = Training(self.dir / "exact", torch.float32)
        training.truth_width = 0.10
        training.advance(1, STEPS)
        with ph.open(self.dir / "exact") as series, series.plan(0.10) as plan:
            made = plan.state_dict(kind="torch")
        for name, truth in training.truth.items():
            if name != "count":
                self.assertLess(float((made[name].double() - truth).norm() / truth.norm()), 1e-6, name)

    def test_half_precision_snapshots_are_as_good_as_their_rounding(self):
        directory, truth = self.train("f16", "f16", "f32", [STEPS])
        self.assertLess(self.error(directory, truth)[0], 2e-4)

    def test_averages_of_a_bf16_model_move(self):
        directory, truth = self.train("bf16", "f32", "bf16", [STEPS])
        self.assertLess(self.error(directory, truth)[0], 1e-5)

    def test_a_failed_write_leaves_no_snapshot(self):
        training = Training(self.dir / "failed", torch.float16)
        training.advance(1, 3)
        training.recorder._averages[1][0] += 1e6
        with self.assertRaises(ph.InputsError):
            training.recorder.save()
        self.assertEqual([p.name for p in (self.dir / "failed").iterdir()], [])

    def test_a_killed_write_leaves_whole_snapshots_or_none(self):
        """A process that ends at the nth write, sync or rename: every name is that of a whole file."""
        directory = self.dir / "whole"
        replay(directory)
        whole = {p.name: tensors_of(p) for p in directory.iterdir()}
        self.assertEqual(len(whole), 4)
        ends, n = set(), 0
        while True:
            n += 1
            killed = self.dir / f"killed-{n}"
            status, end = train_until(killed, n)
            ends.add(end)
            found = {p.name: p for p in killed.iterdir() if not p.name.endswith(".partial")} if killed.exists() else {}
            for name, path in found.items():
                self.assertEqual(tensors_of(path), whole[name], f"{n}: {name}")
            if os.WIFEXITED(status):
                self.assertEqual(status, 0)
                break
            self.assertEqual(os.WTERMSIG(status), signal.SIGKILL)
            if n in (5, 13):  # the same run again, over what was left
                self.assertEqual(train_until(killed, 0), (0, "finished"))
                self.assertEqual({p.name: tensors_of(p) for p in killed.iterdir()}, whole)
        self.assertEqual(set(found), set(whole))
        self.assertEqual(ends, {"write", "fsync", "link", "unlink", "finished"})

    def test_a_design_says_what_is_stored(self):
        design = ph.design(40, 100, [0.05, 0.1, 0.2], disk_bytes=4000, dtype="f16")
        design.save(self.dir / "run.design.json")
        training = Training(self.dir / "design", torch.float32, design=self.dir / "run.design.json")
        training.advance(1, 40)
        with ph.open(self.dir / "design") as series:
            found = {(s.time, s.sigma_rel) for s in series.snapshots}
        self.assertEqual(found, {(t, w) for t in design.times for w in design.widths})
        self.assertEqual({t[0] for p in (self.dir / "design").iterdir() for n, t in tensors_of(p).items() if n != "count"}, {"F16"})
        with self.assertRaises(ph.UsageError):
            Recorder(training.model, (0.1,), design=design, dir=self.dir)
        with self.assertRaises(ph.FileError):
            Recorder(training.model, design=self.dir / "nowhere.json", dir=self.dir)

    def test_updates_at_some_steps_keep_their_width(self):
        """Against a sum in float64: step t counts with the mass that the power function has on (t - U, t]."""
        training = Training(self.dir / "rare", torch.float32, widths=(0.1,), every=0, times=[50], update_every=4)
        g, total, live = ph.gamma(0.1), 0.0, []
        for step in range(1, 51):
            training.advance(step, step)
            live.append(training.model.first.weight.detach().double().clone())
        steps = [*range(4, 49, 4), 50]  # the snapshot updates, too
        for before, step in zip([0, *steps], steps):
            total = total + ((step / 50) ** (g + 1) - (before / 50) ** (g + 1)) * live[step - 1]
        with ph.open(self.dir / "rare") as series, series.plan(profile="newest") as plan:
            made = plan.tensor("first.weight", kind="torch")
        self.assertLess(float((made.double() - total).norm() / total.norm()), 1e-6)

    def test_averages_may_be_float64(self):
        training = Training(self.dir / "double", torch.float32, widths=(0.08,), average_dtype=torch.float64)
        training.advance(1, 60)
        averages = training.recorder.state_dict()["averages"][0]
        for name, average in averages.items():
            self.assertLess(float((average - training.truth[name]).abs().max()), 1e-14, name)

    def test_averages_move_after_a_million_steps(self):
        """Steps that are smaller than half a digit of a float32 average, against float64, also resumed, in any dtype."""
        for dtype in (torch.float32, torch.bfloat16):
            torch.manual_seed(1)
            model = torch.nn.Module()
            first = torch.randn(64)
            model.w = torch.nn.Parameter(first.to(dtype))
            recorders = [Recorder(model, (0.1,), dir=self.dir / str(dtype), every=0) for _ in range(2)]
            recorders[0].step()
            state = {**recorders[0].state_dict(), "n_steps": 10**6, "n_updated": 10**6}
            recorders[0].load_state_dict(state)
            truth = begin = model.w.detach().double().clone()
            for step in range(10**6 + 1, 10**6 + 2001):
                with torch.no_grad():
                    model.w.copy_(first * (1 + 0.001 * torch.randn(64)))
                recorders[step > 10**6 + 777].step()
                if step == 10**6 + 777:  # a new process goes on
                    held = io.BytesIO()
                    torch.save(recorders[0].state_dict(), held)
                    held.seek(0)
                    recorders[1].load_state_dict(torch.load(held))
                truth = truth + (1 - (1 - 1 / step) ** (ph.gamma(0.1) + 1)) * (model.w.detach().double() - truth)
            path = pathlib.Path(recorders[1].save()[0])
            made = torch.frombuffer(bytearray(tensors_of(path)["w"][2]), dtype=torch.float32).double()
            self.assertLess(float((made - truth).norm() / truth.norm()), 4e-8, dtype)  # the rounding of the file
            exact = recorders[1].average(dtype=torch.float64)["w"]
            self.assertLess(float((exact - truth).norm() / (truth - begin).norm()), 1e-6, dtype)
            self.assertIn(b"compensated float32", path.read_bytes())

    def test_states_without_residuals_are_taken(self):
        training = Training(self.dir / "old", torch.float32)
        training.advance(1, 5)
        state = training.recorder.state_dict()
        again = Training(self.dir / "old", torch.float32).recorder
        again.load_state_dict(state)
        del state["residuals"]
        again.load_state_dict(state)  # as earlier versions wrote it
        for name, old in state["averages"][1].items():
            self.assertTrue(torch.equal(old, again.average(0.10)[name]), name)
        with self.assertRaises(ph.InputsError):
            plain = Training(self.dir / "old", torch.float32, compensate=False).recorder
            plain.load_state_dict(training.recorder.state_dict())
        plain.load_state_dict(state)
        self.assertNotIn("residuals", [k for k, v in plain.state_dict().items() if v])

    def test_complex_parameters_are_averaged(self):
        model = torch.nn.Module()
        model.spectrum = torch.nn.Parameter(torch.randn(5, 3, dtype=torch.complex64))
        model.gain = torch.nn.Parameter(torch.randn(3))
        recorder = Recorder(model, (0.05, 0.1), dir=self.dir / "complex", every=10, dtype=torch.float16)
        truth = torch.zeros(5, 3, dtype=torch.complex128)
        for step in range(1, 41):
            with torch.no_grad():
                model.spectrum += torch.randn_like(model.spectrum)
            recorder.step()
            weight = 1 - (1 - 1 / step) ** (ph.gamma(0.1) + 1)
            truth += weight * (model.spectrum.detach().to(torch.complex128) - truth)
        with ph.open(self.dir / "complex") as series, series.plan(0.1) as plan:
            made = plan.tensor("spectrum", kind="torch")
            exchanged = torch.from_dlpack(plan.tensor("spectrum", kind="numpy"))  # by DLPack, without a copy
        self.assertEqual(made.dtype, torch.complex64)
        self.assertTrue(torch.equal(exchanged, made))
        self.assertLess(float((made.to(truth.dtype) - truth).abs().max() / truth.abs().max()), 1e-6)
        again = Recorder(model, (0.05, 0.1), dir=self.dir / "again", every=0)
        again.load_state_dict(recorder.state_dict())
        self.assertEqual(again.n_steps, 40)

    def test_an_attached_recorder_counts_the_steps_that_are_made(self):
        model = torch.nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        recorder = Recorder(model, dir=self.dir, every=0)
        detach = recorder.attach(optimizer)
        for i in range(6):
            optimizer.zero_grad()
            model(torch.ones(1, 2)).sum().backward()
            if i % 3 != 2:  # else a gradient scaler skips the step
                optimizer.step()
        self.assertEqual(recorder.n_steps, 4)
        detach()
        optimizer.step()
        self.assertEqual(recorder.n_steps, 4)

        class Fused(torch.optim.Optimizer):
            """A gradient scaler calls its step() always, and it skips the step itself."""

            def step(self, closure=None):
                pass

        fused = Fused(model.parameters(), {})
        recorder.attach(fused)
        for found_inf in (1, 0):
            fused.found_inf = torch.full((1,), float(found_inf))
            fused.step()
        del fused.found_inf
        fused.step()
        self.assertEqual(recorder.n_steps, 6)

    def test_schedulers_may_be_made_before_and_after_attaching(self):
        for is_before in (True, False):
            model = torch.nn.Linear(2, 2)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            recorder = Recorder(model, every=0)
            schedulers = [torch.optim.lr_scheduler.StepLR(optimizer, 1)] if is_before else []
            detach = recorder.attach(optimizer)
            schedulers.append(torch.optim.lr_scheduler.StepLR(optimizer, 1))
            for _ in range(3):
                optimizer.step()
                for scheduler in schedulers:
                    scheduler.step()
            self.assertEqual(recorder.n_steps, 3)
            detach()
            optimizer.step()
            self.assertEqual(recorder.n_steps, 3)

    def test_recorders_of_one_optimizer_end_in_any_order(self):
        model = torch.nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for closes in ((0, 1), (1, 0)):
            recorders = [Recorder(model, 0.1, every=0) for _ in range(2)]
            for recorder in recorders:
                recorder.attach(optimizer)
            optimizer.step()
            for k, index in enumerate(closes):
                recorders[index].close()
                optimizer.step()
                self.assertEqual([r.n_steps for r in recorders], [1, 2] if closes[0] == 0 else [2, 1])

    def test_a_gradient_scaler_skips_steps(self):
        if not hasattr(torch, "amp") or not hasattr(torch.amp, "GradScaler"):
            self.skipTest("needs torch 2.3 or later")
        model = torch.nn.Linear(2, 2)
        optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.1), torch.amp.GradScaler("cpu")
        recorder = Recorder(model, dir=self.dir, every=0)
        recorder.attach(optimizer)
        for i in range(5):
            optimizer.zero_grad()
            loss = model(torch.ones(1, 2)).sum() * (float("inf") if i == 1 else 1)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        self.assertEqual(recorder.n_steps, 4)

    def test_wrapped_models_have_the_names_of_the_model(self):
        class Compiled(torch.nn.Module):
            def __init__(self, model):
                super().__init__()
                self._orig_mod = model

        Compiled.__name__ = "OptimizedModule"
        model = torch.nn.Sequential(torch.nn.Linear(2, 2), Compiled(torch.nn.Linear(2, 2)))
        recorder = Recorder(Compiled(model), dir=self.dir / "wrapped", every=0)
        recorder.step()
        self.assertEqual(set(tensors_of(recorder.save()[0])), {"0.weight", "0.bias", "1.weight", "1.bias"})
        with torch.no_grad():
            model[0].weight += 1
        before = model[0].weight.detach().clone()
        with recorder.copy_to(Compiled(model)):
            self.assertFalse(torch.equal(model[0].weight, before))
        self.assertTrue(torch.equal(model[0].weight, before))

    def test_states_of_their_own_making_and_replaced_tensors_are_followed(self):
        class Odd(torch.nn.Linear):
            def _save_to_state_dict(self, destination, prefix, keep_vars):
                destination[prefix + "twice"] = self.weight.detach() * 2

        model = torch.nn.Sequential(Odd(2, 2), torch.nn.BatchNorm1d(2))
        model.register_buffer("mean", torch.zeros(2))
        for network in (model, model[1:]):
            recorder = Recorder(network, (0.1,), dir=self.dir / "odd", every=0)
            recorder.step()
            with torch.no_grad():
                model[0].weight += 1
            model[1].running_mean = torch.full((2,), 3.0)  # another tensor than the one at the beginning
            model[1].weight.data = torch.full((2,), 5.0)
            recorder.step()
            averages = recorder.average()
            names = [n for n in averages if n.endswith("running_mean")]
            self.assertGreater(float(averages[names[0]][0]), 1)
            if network is model:
                self.assertGreater(float((averages["0.twice"] - 2 * (model[0].weight - 1)).mean()), 1)

    def test_snapshots_name_their_run(self):
        training = Training(self.dir / "named", torch.float32)
        training.advance(1, 10)
        data = next((self.dir / "named").iterdir()).read_bytes()
        metadata = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]
        self.assertEqual(metadata["posthoc_ema.run"], training.recorder.run_id)
        self.assertEqual(metadata["posthoc_ema.unit"], "steps")
        again = Training(self.dir / "named", torch.float32)
        self.assertNotEqual(again.recorder.run_id, training.recorder.run_id)
        again.recorder.load_state_dict(training.recorder.state_dict())
        self.assertEqual(again.recorder.run_id, training.recorder.run_id)

    def test_snapshots_of_two_runs_are_no_series(self):
        first = Training(self.dir / "first", torch.float32)
        second = Training(self.dir / "second", torch.float32)
        first.advance(1, 20)
        second.advance(1, 40)
        for path in (self.dir / "first").iterdir():
            path.replace(self.dir / "second" / path.name)
        with self.assertRaises(ph.InputsError) as refused:
            ph.open(self.dir / "second")
        for training, times in (first, "times 10 to 20"), (second, "times 30 to 40"):
            self.assertRegex(str(refused.exception), f"{training.recorder.run_id[:8]}' has 4 snapshots, {times}")
            with ph.open(self.dir / "second", run=training.recorder.run_id[:12]) as series:
                self.assertEqual(len(series.snapshots), 4)

    def test_wrong_options_are_refused(self):
        model = torch.nn.Linear(2, 2)
        wrong = [
            {"every": -1}, {"update_every": 0}, {"every": 2, "times": [4]}, {"times": [0]}, {"times": [1.5]},
            {"every": 0, "dtype": torch.float64}, {"every": 0, "average_dtype": torch.bfloat16},
            {}, {"every": 2.5}, {"every": True}, {"times": iter(())}, {"every": 2, "on_error": "stop"},
        ]  # fmt: skip
        for options in wrong:
            with self.assertRaises(ph.UsageError, msg=str(options)):
                Recorder(model, dir=self.dir, **options)
        images = ph.design(40, 100, [0.1], disk_bytes=4000, unit="images")
        for options in ({"every": 2, "unit": "images"}, {"design": images}):  # which steps would be called
            with self.assertRaisesRegex(ph.UsageError, "unit: expected times in steps, .* found images"):
                Recorder(model, dir=self.dir, **options)
        with self.assertRaises(ph.UsageError):
            with Recorder(model, dir=self.dir, every=0).copy_to(model, 0.2):
                pass
        recorder = Recorder(model, 0.1, dir=self.dir / "times", times=(t for t in (2, 5.0)))
        for _ in range(5):
            recorder.step()
        self.assertEqual({t for t, _ in find_snapshots(self.dir / "times", "snapshot")}, {2, 5})

    def walk(self, recorder, steps=1):
        for _ in range(steps):
            with torch.no_grad():
                for parameter in recorder.model.parameters():
                    parameter += 1
            recorder.step()

    def bytes_of(self, directory):
        return {p.name: p.read_bytes() for p in directory.iterdir()}

    def test_what_is_no_model_is_named(self):
        model = torch.nn.Linear(3, 3)
        for wrong in (5, model.state_dict(), model.parameters()):
            with self.assertRaisesRegex(TypeError, f"model: expected a torch module, found {type(wrong).__name__}"):
                Recorder(wrong, dir=self.dir, every=10)
        recorder = Recorder(model, dir=self.dir, every=1)
        recorder.step()
        with self.assertRaisesRegex(TypeError, "model: expected a torch module, found dict"):
            with recorder.copy_to({}):
                pass
        with ph.open(self.dir) as series, series.plan(0.05) as plan:
            with self.assertRaisesRegex(TypeError, "model: expected a torch module, found list"):
                plan.load_into([])

    def test_averages_without_a_directory_are_in_memory(self):
        model = torch.nn.Linear(3, 3)
        for options in ({"every": 2}, {"times": [5]}):
            with self.assertRaisesRegex(ph.UsageError, "dir: expected"):
                Recorder(model, **options)
        before = sorted(os.listdir(self.dir))
        with Recorder(model, every=0) as recorder:
            recorder.step()
            with self.assertRaisesRegex(ph.UsageError, "without dir"):
                recorder.save()
        self.assertIn("memory", repr(recorder))
        other = Recorder(model, every=0)
        other.load_state_dict(recorder.state_dict())
        self.assertEqual(other.n_steps, 1)
        self.assertEqual(sorted(os.listdir(self.dir)), before)

    def test_averages_may_be_moved_to_another_device(self):
        model = torch.nn.Linear(3, 3)
        recorder = Recorder(model, dir=self.dir, every=0).to("meta")
        self.assertEqual({part.device.type for kept in (*recorder._averages, *recorder._residuals) for part in kept}, {"meta"})
        recorder.step()  # parameters are copied there
        self.assertEqual(model.weight.device.type, "cpu")
        with self.assertRaises(TypeError):  # averages in 16 bits stop moving
            recorder.to(torch.float16)

    def test_a_folder_has_one_run(self):
        directory, model = self.dir / "run", torch.nn.Linear(2, 2)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(64).round_().div_(64)  # steps forth and back are exact
        first = Recorder(model, 0.1, dir=directory, every=2)
        self.walk(first, 3)
        state, before = copy.deepcopy(first.state_dict()), self.bytes_of(directory)
        self.walk(first, 1)
        whole = self.bytes_of(directory)
        second = Recorder(model, 0.1, dir=directory, every=2)
        with self.assertRaises(ph.OutputError) as caught:
            second.step()
        for part in ("snapshot-0000002-0.100.safetensors", first.run_id, second.run_id):
            self.assertIn(part, str(caught.exception))
        with self.assertRaises(ph.OutputError):
            second.load_state_dict({**state, "run_id": "other"})
        other = Recorder(model, 0.1, dir=directory, every=2, prefix="other")
        self.walk(other, 2)
        (directory / "other-0000002-0.100.safetensors").unlink()
        self.assertEqual(self.bytes_of(directory), whole)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 3
        second.load_state_dict(state)  # resumed, it makes the same snapshot again
        self.walk(second, 1)
        self.assertEqual(self.bytes_of(directory), whole)
        (directory / "snapshot-0000003-0.100.safetensors").write_bytes(b"no snapshot")
        with self.assertRaises(ph.OutputError):
            Recorder(model, 0.1, dir=directory, every=2).step()
        third = Recorder(model, 0.1, dir=directory, every=2, replace=True)
        self.walk(third, 2)
        after = self.bytes_of(directory)
        self.assertIn(third.run_id.encode(), after["snapshot-0000002-0.100.safetensors"])
        self.assertEqual(set(before) < set(after), True)

    def test_two_runs_at_once_write_whole_snapshots(self):
        """One ends its write while the other is in the middle of it."""
        directory, model = self.dir / "at once", torch.nn.Linear(2, 2)
        first, second = (Recorder(model, 0.1, dir=directory, every=0) for _ in range(2))
        first.step()
        second.step()
        write = torch.Tensor.contiguous
        paths = []

        def meanwhile(tensor):
            if not paths:
                paths.append("")
                paths[:] = second.save()
            return write(tensor)

        torch.Tensor.contiguous = meanwhile
        try:
            with self.assertRaises(ph.OutputError) as caught:
                first.save()
        finally:
            torch.Tensor.contiguous = write
        self.assertIn(second.run_id, str(caught.exception))
        self.assertEqual([str(p) for p in directory.iterdir()], paths)
        self.assertIn(second.run_id.encode(), pathlib.Path(paths[0]).read_bytes())
        self.assertEqual(len(tensors_of(paths[0])), 2)

    def test_what_others_have_planted_is_not_written(self):
        directory, model = self.dir / "planted", torch.nn.Linear(2, 2)
        recorder = Recorder(model, 0.1, dir=directory, every=0)
        recorder.step()
        path = pathlib.Path(recorder.path(0.1))
        mine = self.dir / "mine"
        mine.write_text("mine")
        os.symlink(mine, f"{path}.partial")
        os.mkfifo(f"{path}.0.partial")
        os.symlink(mine, path)
        design = ph.design(40, 100, [0.1], disk_bytes=4000)
        os.symlink(mine, self.dir / "d.json.partial")
        design.save(self.dir / "d.json")
        with self.assertRaises(ph.OutputError):
            design.save(self.dir / "d.json")
        with self.assertRaises(ph.OutputError):
            recorder.save()
        path.unlink()
        os.mkfifo(path)
        with self.assertRaises(ph.OutputError):
            recorder.save()
        path.unlink()
        recorder.save()
        self.assertEqual(len(tensors_of(path)), 2)
        self.assertFalse(path.is_symlink())
        self.assertEqual(mine.read_text(), "mine")

    def test_leftovers_of_the_run_are_removed(self):
        directory, model = self.dir / "left", torch.nn.Linear(2, 2)
        directory.mkdir()
        recorder = Recorder(model, 0.1, dir=directory, every=1)
        name = os.path.basename(recorder.path(0.1))
        left, locked = (_files.partial_of(str(directory / name), recorder.run_id) for _ in range(2))
        other = _files.partial_of(str(directory / name), "another")
        for path in (left, other):
            pathlib.Path(path).touch()
        (directory / f"{os.path.basename(left)}.partial").mkdir()
        with _files.create(locked):
            recorder.step()
            self.assertEqual(
                sorted(p.name for p in directory.iterdir()),
                sorted([os.path.basename(locked), os.path.basename(other), "snapshot-0000001-0.100.safetensors"]),
            )

    def test_the_end_is_saved_once(self):
        directory, model = self.dir / "end", torch.nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with Recorder(model, 0.1, dir=directory, every=4) as recorder:
            recorder.attach(optimizer)
            for _ in range(6):
                model(torch.ones(1, 2)).sum().backward()
                optimizer.step()
        self.assertEqual([t for t, _ in find_snapshots(directory, "snapshot")], [4, 6])
        optimizer.step()
        self.assertEqual(recorder.n_steps, 6)
        with self.assertRaises(ph.UsageError):
            recorder.step()
        with Recorder(model, 0.1, dir=self.dir / "due", every=4) as recorder:
            self.walk(recorder, 4)
            path = pathlib.Path(recorder.path(0.1))
            before = path.stat()
            self.assertEqual(recorder.save(), [str(path)])
        self.assertEqual(path.stat(), before)
        with self.assertRaises(KeyError):
            with Recorder(model, 0.1, dir=self.dir / "failed", every=4) as recorder:
                recorder.attach(optimizer)
                optimizer.step()
                raise KeyError
        optimizer.step()
        self.assertEqual(list((self.dir / "failed").iterdir()), [])
        Recorder(model, 0.1, dir=self.dir / "nothing", every=4).close()

    def test_steps_count_once(self):
        model = torch.nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        recorder = Recorder(model, 0.1, dir=self.dir, every=0, update_every=2)
        detach = recorder.attach(optimizer)
        for twice in (lambda: recorder.attach(optimizer), recorder.step):
            with self.assertRaises(ph.UsageError):
                twice()
        optimizer.step()
        with recorder.copy_to(model):
            for inside in (optimizer.step, recorder.save):
                with self.assertRaises(ph.UsageError):
                    inside()
        self.assertEqual(recorder.n_steps, 1)
        with recorder.copy_to(copy.copy(model)), self.assertRaises(ph.UsageError):  # has the same parameters
            optimizer.step()
        with recorder.copy_to(copy.deepcopy(model)):
            optimizer.step()
        self.assertEqual(recorder.n_steps, 2)
        detach()
        recorder.step()
        recorder.attach(optimizer)

    def test_a_model_that_has_changed_is_refused(self):
        def add(model):
            model.third = torch.nn.Linear(1, 1)
            return "added: 'third.weight', 'third.bias'"

        def remove(model):
            del model.second
            return "missing: 'second.weight', 'second.bias'"

        def wrap(model):
            model.first = torch.nn.Sequential(model.first)
            return "added: 'first.0.weight'"

        def resize(model):
            model.first = torch.nn.Embedding(5, 2)
            return "'first.weight' is [5, 2], was [4, 2]"

        def grow(model):
            model.first.weight = torch.nn.Parameter(torch.zeros(7, 2))
            return "'first.weight' is [7, 2], was [4, 2]"

        def register(model):
            model.second.register_parameter("scale", torch.nn.Parameter(torch.ones(2)))
            return "added: 'second.scale'"

        for change in (add, remove, wrap, resize, grow, register):
            model = torch.nn.Module()
            model.first, model.second = torch.nn.Embedding(4, 2), torch.nn.Linear(2, 2)
            recorder = Recorder(model, 0.1, dir=self.dir / change.__name__, every=0)
            recorder.step()
            expected = change(model)
            for refuse in (recorder.step, recorder.save):
                with self.assertRaises(ph.InputsError) as caught:
                    refuse()
                self.assertIn(expected, str(caught.exception))
            self.assertEqual(list((self.dir / change.__name__).iterdir()), [])
        model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
        recorder = Recorder(model, 0.1, dir=self.dir / "same", every=0)
        recorder.step()
        model[0] = copy.deepcopy(model[0])  # other modules of the same names are followed
        self.walk(recorder)
        model[0].register_buffer("cache", torch.zeros(3), persistent=False)
        self.walk(recorder)
        recorder.save()
        self.assertGreater(float((recorder.average()["0.weight"] - model[0].weight).abs().sum()), 0)

    def test_tensors_of_another_shape_are_refused_before_averages_move(self):
        """Also of shapes that torch would broadcast, at the first update, too."""
        shapes = ((4,), (1,)), ((1,), (4,)), ((4, 4), (4, 1)), ((4, 4), (4,)), ((4, 1), (4, 4)), ((2, 4), ()), ((), (3,))
        for (before, after), options in itertools.product(shapes, ({}, {"compensate": False}, {"average_dtype": "f64"})):
            for n_steps in (0, 2):
                model = torch.nn.ParameterDict({"a": torch.ones(3), "w": torch.ones(before), "z": torch.ones(3)})
                recorder = Recorder(model, 0.1, every=0, **options)
                self.walk(recorder, n_steps)
                averages = recorder.average()
                held, model["w"] = model["w"], torch.nn.Parameter(torch.full(after, 5.0))
                with self.assertRaisesRegex(ph.InputsError, re.escape(f"'w' is {list(after)}, was {list(before)}")):
                    self.walk(recorder)
                model["w"] = held
                self.assertEqual(recorder.n_steps, n_steps)
                for name, average in recorder.average().items():
                    self.assertTrue(torch.equal(average, averages[name]), (before, after, options, name))
                self.walk(recorder)
                self.assertEqual(recorder.n_steps, n_steps + 1)

    def test_inference_mode_changes_no_average(self):
        """Recorders may be made, moved, copied and used in inference mode, and outside of it afterwards."""
        model, inference = torch.nn.Linear(600, 600), torch.inference_mode  # is updated in pieces
        plain = Recorder(model, 0.1, every=0)
        with inference():
            recorder = Recorder(model, 0.1, dir=self.dir, every=5, background=True)
        for step in range(1, 41):
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter += torch.randn_like(parameter)
            plain.step()
            with inference(step % 3 == 0):
                recorder.step()
            with inference(step % 10 == 4):
                recorder.load_state_dict(recorder.state_dict())
                recorder.to("cpu")
                with recorder.copy_to():
                    pass
            if step % 10 == 5:  # outside of it again, where training would not take parameters that were made in it
                model(torch.ones(1, 600)).sum().backward()
        recorder.wait()
        with inference():
            copies = copy.deepcopy(recorder), pickle.loads(pickle.dumps(recorder))
        for other in (recorder, *copies):
            other.step()
        plain.step()
        for other in (recorder, *copies):
            for name, average in plain.average().items():
                self.assertTrue(torch.equal(other.average()[name], average), name)

    def test_frozen_parameters_of_inference_mode_that_change_are_refused(self):
        """They have no count of their changes, and few elements are sampled."""
        with torch.inference_mode():
            base = torch.nn.Linear(40, 40).requires_grad_(False)
        model = torch.nn.Sequential(base, torch.nn.Linear(40, 2))
        recorder = Recorder(model, 0.1, dir=self.dir, every=2, frozen_once=True)
        for _ in range(4):
            recorder.step()
        with torch.inference_mode():
            base.weight[5, 7] += 1
        recorder.step()
        with self.assertRaisesRegex(ph.InputsError, "'0.weight': was frozen, and trains or has changed"):
            recorder.step()  # with a snapshot

    def test_tensors_that_share_no_more_are_refused(self):
        model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
        model[1].weight = model[0].weight
        recorder = Recorder(model, 0.1, dir=self.dir, every=0)
        self.walk(recorder, 2)
        model[2].weight = model[0].weight  # tied later: its average stays its own
        self.walk(recorder, 2)
        recorder.save()
        model[1].weight = torch.nn.Parameter(model[0].weight * 5)
        self.walk(recorder)
        for refuse in (recorder.save, recorder.average, recorder.state_dict, recorder.copy_to().__enter__):
            with self.assertRaisesRegex(ph.InputsError, "'1.weight' and '0.weight' shared a tensor"):
                refuse()

    def test_tensors_without_data_are_refused(self):
        model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
        empty = torch.nn.Sequential(torch.nn.Linear(2, 2, device="meta"), torch.nn.Linear(2, 2, device="meta"))
        with self.assertRaisesRegex(ph.InputsError, r"'0.weight': has no data \(meta\)"):
            Recorder(empty, 0.1, every=0)
        recorder = Recorder(model, 0.1, dir=self.dir, every=1)
        self.walk(recorder)
        with self.assertRaisesRegex(ph.InputsError, r"'0.weight' is \[2, 2\], without data \(meta\), was \[2, 2\]"):
            recorder.copy_to(empty).__enter__()
        with ph.open(self.dir) as series, series.plan(0.1) as plan:
            with self.assertRaisesRegex(ph.InputsError, r"'0.bias': has no data \(meta\)"):
                plan.load_into(empty)

    def test_a_recorder_of_a_pickle_continues(self):
        recorder = Recorder(torch.nn.Linear(600, 600), 0.1, every=0)  # is updated in pieces
        self.walk(recorder, 3)
        again = pickle.loads(pickle.dumps(recorder))
        self.walk(again, 3)
        self.walk(recorder, 3)
        for name, average in recorder.average().items():
            self.assertTrue(torch.equal(again.average()[name], average), name)

    def test_snapshots_that_a_resumed_run_leaves_behind_are_removed(self):
        """Of a run that continues from a state, and from a pickle in another process."""
        for is_pickled in (False, True):
            directory, model = self.dir / str(is_pickled), torch.nn.Linear(2, 2)
            first = Recorder(model, 0.1, dir=directory, every=2)
            self.walk(first, 3)
            state, pickled = copy.deepcopy(first.state_dict()), pickle.dumps(first)
            self.walk(first, 7)
            other = Recorder(model, 0.1, dir=directory, every=1, prefix="other")
            self.walk(other, 9)
            (directory / "snapshot-0000012-0.100.safetensors").write_bytes(b"of no run")
            written = [f"other-{step:07d}-0.100.safetensors" for step in range(1, 10)] + ["snapshot-0000012-0.100.safetensors"]

            def names():
                return sorted(set(os.listdir(directory)).difference(written))

            if is_pickled:
                with unittest.mock.patch.object(recorder_module, "_PROCESS", "another"):
                    second = pickle.loads(pickled)
                second.every, second.replace = 5, True
            else:
                second = Recorder(model, 0.1, dir=directory, every=5, replace=True)
                second.load_state_dict(state)
            self.walk(second)
            self.assertEqual(names(), [f"snapshot-{step:07d}-0.100.safetensors" for step in (2, 4, 6, 8, 10)])  # none is written
            with self.assertLogs("posthocema", "INFO") as logged:
                self.walk(second)
            self.assertEqual(names(), [f"snapshot-{step:07d}-0.100.safetensors" for step in (2, 5)])
            self.assertIn("removed", logged.output[0])
            self.assertTrue(set(written) <= set(os.listdir(directory)))
            self.walk(second, 5)
            self.assertEqual(names()[-1], "snapshot-0000010-0.100.safetensors")

    def test_copies_of_an_attached_recorder_are_not_attached(self):
        model = torch.nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        recorder = Recorder(model, 0.1, dir=self.dir, every=1, background=True)
        recorder.attach(optimizer)
        optimizer.step()  # a thread writes
        for again in (copy.deepcopy(recorder), pickle.loads(pickle.dumps(recorder))):
            again.step()
            again.close()
        optimizer.step()
        self.assertEqual(recorder.n_steps, 2)
        recorder.close()

    def test_labels_of_a_model_with_running_statistics_fit(self):
        for seed in range(3):
            torch.manual_seed(seed)
            model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
            optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
            with Recorder(model, (0.05, 0.1), dir=self.dir / str(seed), every=20) as recorder:
                recorder.attach(optimizer)
                for _ in range(400):
                    x = torch.randn(8, 8)
                    optimizer.zero_grad()
                    (model(x) - x[:, :2].sin() - 0.3 * torch.randn(8, 2)).square().mean().backward()
                    optimizer.step()
            with ph.open(self.dir / str(seed)) as series:
                self.assertEqual(series.checks().verdict, "fits", series.checks().reason)

    def test_a_choice_of_tensors_is_recorded(self):
        net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.BatchNorm1d(64), torch.nn.Linear(64, 2))
        net[0].requires_grad_(False)
        whole = torch.nn.ModuleDict({"net": net, "loss": torch.nn.Linear(64, 64)})
        buffers = {"1.running_mean", "1.running_var", "1.num_batches_tracked"}
        trained = {"1.weight", "1.bias", "2.weight", "2.bias"}
        for i, (options, names) in enumerate((
            ({"module": "net"}, set(net.state_dict())),
            ({"module": "net", "trainable_only": True}, trained | buffers),
            ({"module": "net", "trainable_only": True, "exclude": "running|num_"}, trained),
            ({"include": (x for x in [r"^net\.2", "loss.bias"])}, {"net.2.weight", "net.2.bias", "loss.bias"}),
        )):  # fmt: skip
            recorder = Recorder(whole, 0.1, dir=self.dir / str(i), every=1, **options)
            recorder.step()
            self.assertEqual(set(tensors_of(recorder.path(0.1))), names)
            self.assertEqual(set(recorder.average()), names - {"1.num_batches_tracked"})
            before = [t.clone() for t in whole.state_dict().values()]
            with recorder.copy_to():
                pass
            self.assertTrue(all(map(torch.equal, before, whole.state_dict().values())))
            recorder.load_state_dict(recorder.state_dict())
            if "trainable_only" in options:
                self.assertLess(os.path.getsize(recorder.path(0.1)), 3000)  # net has 18 kB
                net[2].weight.requires_grad_(False)  # still recorded
                recorder.step()
                self.assertEqual(set(tensors_of(recorder.path(0.1))), names)
                net[2].weight.requires_grad_(True)
                net[0].bias.requires_grad_(True)
                with self.assertRaisesRegex(ph.InputsError, "added: '0.bias'$"):
                    recorder.step()
                net[0].bias.requires_grad_(False)
        for error, options in (
            (ph.InputsError, {"module": "nets"}), (ph.InputsError, {"include": "nothing"}), (ph.UsageError, {"exclude": "("}),
            (ph.UsageError, {"include": [3]}),
        ):  # fmt: skip
            with self.assertRaises(error):
                Recorder(whole, 0.1, dir=self.dir / "wrong", every=1, **options)

    def test_a_module_that_is_replaced_is_followed_by_its_name(self):
        whole = torch.nn.ModuleDict({"net": torch.nn.Linear(2, 2)})
        recorder = Recorder(whole, 0.1, every=0, module="net")
        self.walk(recorder, 2)
        first, whole["net"] = whole["net"], copy.deepcopy(whole["net"])
        for _ in range(50):
            with torch.no_grad():
                whole["net"].weight += 1
            recorder.step()
        self.assertGreater(float((recorder.average()["weight"] - first.weight).min()), 20)
        with recorder.copy_to() as lent:
            self.assertIs(lent, whole["net"])
        whole["net"] = torch.nn.Linear(3, 2)
        with self.assertRaisesRegex(ph.InputsError, r"'weight' is \[2, 3\], was \[2, 2\]"):
            recorder.step()
        del whole["net"]
        with self.assertRaisesRegex(ph.InputsError, "module: the model has no 'net'"):
            recorder.step()

    def once(self, name, steps=0, **options):
        """A training whose frozen parameters are stored once, a buffer beside them."""
        training = Training(self.dir / name, torch.float32, frozen_once=True, **options)
        training.advance(1, steps)
        return training, self.dir / name / "snapshot-frozen.safetensors"

    def test_frozen_parameters_are_stored_once(self):
        training, frozen = self.once("once", 20, every=10)
        Training(self.dir / "all", torch.float32, every=10).advance(1, 20)
        held = training.recorder._averages[0] + training.recorder._residuals[1]
        self.assertEqual({tuple(t.shape) for t in held}, {(16, 8), (16,), (16, 16)})
        paths = sorted(frozen.parent.glob("snapshot-0*"))
        self.assertEqual(len(paths), 4)
        for path in paths:
            found, whole = tensors_of(path), tensors_of(self.dir / "all" / path.name)
            self.assertEqual(found, {n: t for n, t in whole.items() if not n.startswith("frozen.")})
        self.assertEqual(set(tensors_of(frozen)), {"frozen.weight", "frozen.bias"})
        own = training.model.state_dict()
        self.assertEqual(training.recorder.average().keys(), own.keys() - {"frozen.weight", "frozen.bias", "count"})
        with training.recorder.copy_to(width=0.10) as model:
            self.assertTrue(torch.equal(model.frozen.weight, own["frozen.weight"]))
        with ph.open(frozen.parent) as series, series.plan([0.07, 0.08]) as plan:
            self.assertIn("2 frozen tensors", series.notes[-1])
            self.assertEqual(series.recognised["left_out"], [])
            with ph.open(self.dir / "all") as wholes, wholes.plan([0.07, 0.08]) as other:
                expected = other.state_dicts(kind="torch")
            made = [plan.state_dict(1, kind="torch"), *plan.state_dicts(kind="torch"), dict(plan.iterate(1, kind="torch"))]
            plan.run(self.dir / "made")
            files = [{n: t[2] for n, t in tensors_of(p).items()} for p in sorted((self.dir / "made").iterdir())]
            model = Model()
            plan.load_into(model, 1)
        for state, whole in zip(made, (expected[1], *expected, expected[1])):
            self.assertEqual(state.keys(), own.keys())
            self.assertTrue(all(torch.allclose(state[n], t, rtol=1e-4) for n, t in whole.items()))
            self.assertTrue(torch.equal(state["frozen.weight"], own["frozen.weight"]))
        for file in files:
            self.assertEqual(file["frozen.weight"], own["frozen.weight"].numpy().tobytes())
        self.assertTrue(torch.equal(model.frozen.bias, own["frozen.bias"]))

    def test_a_folder_of_a_model_gets_the_stored_frozen_parameters(self):
        training, frozen = self.once("once", 20)
        like = self.dir / "like"
        like.mkdir()
        (like / "config.json").write_text("{}")
        with ph.open(frozen.parent) as series, series.plan(0.08) as plan:
            plan.run(like / "model.safetensors")
            before = tensors_of(like / "model.safetensors")
            plan.save_pretrained(self.dir / "made", like=like)
        self.assertEqual(tensors_of(self.dir / "made" / "model.safetensors"), before)

    def test_frozen_parameters_keep_their_dtype(self):
        model = torch.nn.ModuleDict({"base": torch.nn.Linear(4, 4).bfloat16(), "a": torch.nn.Linear(4, 4)})
        model["base"].requires_grad_(False)
        model["base"].codes = torch.nn.Parameter(torch.arange(5, dtype=torch.uint8), requires_grad=False)
        recorder = Recorder(model, dir=self.dir / "x", every=1, dtype="f16", frozen_once=True)
        recorder.step()
        found = {n: t[0] for n, t in tensors_of(self.dir / "x" / "snapshot-frozen.safetensors").items()}
        self.assertEqual(found, {"base.weight": "BF16", "base.bias": "BF16", "base.codes": "U8"})

    def test_each_dtype_of_safetensors_is_written(self):
        model = torch.nn.Linear(2, 2)
        kinds = {"float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2", "uint16": "U16", "uint32": "U32", "int16": "I16"}
        expected = {name: kind for name, kind in kinds.items() if hasattr(torch, name)}
        for name in expected:
            value = torch.arange(4).to(getattr(torch, name))
            setattr(model, name, torch.nn.Parameter(value, requires_grad=False))
        Recorder(model, 0.1, dir=self.dir, every=1, frozen_once=True).step()
        found = tensors_of(self.dir / "snapshot-frozen.safetensors")
        self.assertEqual({name: found[name][0] for name in expected}, expected)
        with ph.open(self.dir) as series, series.plan(0.1) as plan:
            made = plan.state_dict(kind="torch")
        for name in expected:
            self.assertEqual(made[name].float().tolist(), [0, 1, 2, 3], name)

    def test_frozen_parameters_that_change_are_refused(self):
        for name, change in {
            "trains": lambda weight: weight.requires_grad_(True),
            "moves": lambda weight: weight.add_(1),
            "moves unseen by autograd": lambda weight: weight.data.mul_(1.5),
            "is replaced": lambda weight: setattr(weight, "data", weight.data + 1),
        }.items():
            training, _ = self.once(name, 5, every=1)
            weight = training.model.frozen.weight
            with torch.no_grad():
                weight.copy_(weight.clone())  # no change
            training.recorder.step()
            with torch.no_grad():
                change(weight)
            with self.assertRaisesRegex(ph.InputsError, "'frozen.weight': was frozen, and trains or has changed"):
                training.recorder.step()
        training, _ = self.once("is another", 5, every=0)
        training.model.frozen.weight = torch.nn.Parameter(torch.ones(4, 16), requires_grad=False)
        with self.assertRaisesRegex(ph.InputsError, "'frozen.weight': was frozen"):
            training.recorder.save()

    def test_a_resumed_run_has_the_same_frozen_parameters(self):
        training, frozen = self.once("run", 97)
        training.save(self.dir / "state.pt")
        whole, _ = self.once("whole", STEPS)
        written = frozen.stat()
        again, _ = self.once("run")
        again.load(self.dir / "state.pt")
        again.advance(98, STEPS)
        self.assertEqual((frozen.stat().st_ino, frozen.stat().st_mtime_ns), (written.st_ino, written.st_mtime_ns))
        for path in frozen.parent.iterdir():
            self.assertEqual(tensors_of(path), tensors_of(self.dir / "whole" / path.name), path.name)
        for options, expected in ({}, "other tensors than the frozen ones"), ({"replace": True}, ""):
            other, _ = self.once("run", **options)
            other.load(self.dir / "state.pt")
            with torch.no_grad():
                other.model.frozen.bias += 1
            if expected:
                with self.assertRaisesRegex(ph.OutputError, f"snapshot-frozen.safetensors: has {expected}"):
                    other.recorder.step()
                self.assertEqual(frozen.stat().st_ino, written.st_ino)
            else:
                other.recorder.step()
                other.recorder.save()
                self.assertEqual(tensors_of(frozen)["frozen.bias"][2], other.model.frozen.bias.numpy().tobytes())
        with self.assertRaisesRegex(ph.InputsError, "is of another training"):
            ph.open(frozen.parent)

    def test_frozen_parameters_appear_before_snapshots(self):
        """Also beside the training; a file that is there is not written again."""
        publish, names = _files._publish, []

        def stop(partial, path, replace):
            names.append(os.path.basename(path))
            if len(names) == 2:
                raise OSError(errno.EIO, "planted")
            publish(partial, path, replace)

        for background in (False, True):
            names.clear()
            training, frozen = self.once(f"killed {background}", 5, every=0, background=background)
            _files._publish = stop
            try:
                with self.assertRaises(ph.OutputError):
                    training.recorder.save()
                    training.recorder.wait()
            finally:
                _files._publish = publish
            self.assertEqual([p.name for p in frozen.parent.iterdir()], [frozen.name])
            written = frozen.stat().st_ino
            training.recorder.close()
            self.assertEqual((names[0], frozen.stat().st_ino), (frozen.name, written))
            self.assertEqual(len(list(frozen.parent.iterdir())), 3)

    def test_frozen_parameters_are_chosen_once(self):
        with self.assertRaisesRegex(ph.UsageError, "trainable_only: leaves out"):
            Recorder(Model(), dir=self.dir, every=0, trainable_only=True, frozen_once=True)
        model = Model()
        with unittest.mock.patch.object(recorder_module._shards, "is_sharded", lambda tensor: True):
            with self.assertRaisesRegex(ph.InputsError, "frozen_once: sharded parameters"):
                Recorder(model, dir=self.dir, every=0, frozen_once=True)
        model.tied.requires_grad_(False)
        for options, n_warnings in ({}, 1), ({"frozen_once": True}, 0), ({"trainable_only": True}, 0):
            with self.assertLogs("posthocema", "WARNING") as logs:
                recorder_module.log.warning("one")
                Recorder(model, every=0, **options)
            self.assertEqual(len(logs.output), 1 + n_warnings)
            self.assertRegex(logs.output[-1], "frozen_once=True stores them once" if n_warnings else "one")

    def test_an_average_is_loaded_into_a_model(self):
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
        model[1].weight = model[0].weight
        recorder = Recorder(model, (0.05, 0.1), dir=self.dir / "all", every=5)
        some = Recorder(model, (0.05, 0.1), dir=self.dir / "some", every=5, include=["weight"])
        for _ in range(30):
            with torch.no_grad():
                model[0].weight.add_(torch.randn(4, 4))
            recorder.step()
            some.step()
        with ph.open(self.dir / "all") as series, series.plan([0.1, 0.15]) as plan:
            loaded = copy.deepcopy(model).half()
            plan.load_into(torch.nn.DataParallel(loaded), 1)
            made = plan.state_dict(1, kind="torch", dtype="f16")
            self.assertTrue(all(torch.equal(t, made[n]) for n, t in loaded.state_dict().items()))
            self.assertIs(loaded[0].weight, loaded[1].weight)
            before = [p.clone() for p in model.parameters()]
            for other in (model[0], torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 1))):
                with self.assertRaisesRegex(ph.InputsError, "are not of this model"):
                    plan.load_into(other)
            with self.assertRaisesRegex(ph.InputsError, "'2.weight': is in the model, but not"):
                plan.load_into(torch.nn.Sequential(*model, torch.nn.Linear(1, 1)))
            self.assertTrue(all(map(torch.equal, before, model.parameters())))
        with ph.open(self.dir / "some", exclude="^1") as series, series.plan(0.1) as plan:
            with self.assertRaises(ph.InputsError):
                plan.load_into(model)
            plan.load_into(model, strict=False)
            self.assertTrue(torch.equal(model[1].weight, plan.tensor("0.weight", kind="torch")))

    def test_autocast_forgets_casts_of_other_parameters(self):
        model = torch.nn.Linear(4, 1, bias=False)
        recorder = Recorder(model, 0.1, dir=self.dir, every=5)
        self.walk(recorder, 20)
        x = torch.ones(1, 4)
        own, average = float(model.weight.sum()), float(recorder.average()["weight"].sum())
        self.assertGreater(own - average, 1)
        with ph.open(self.dir) as series, series.plan(0.1) as plan, torch.no_grad():
            with torch.autocast("cpu", dtype=torch.bfloat16):
                self.assertAlmostEqual(float(model(x)), own, delta=0.4)  # casts the parameters once, for all uses in this block
                with recorder.copy_to():
                    self.assertAlmostEqual(float(model(x)), average, delta=0.4)
                self.assertAlmostEqual(float(model(x)), own, delta=0.4)
                plan.load_into(model)
                self.assertAlmostEqual(float(model(x)), average, delta=0.4)

    def test_a_recorder_without_a_step_says_so(self):
        for n_steps in (0, 1):
            recorder = Recorder(torch.nn.Linear(2, 2), 0.1, dir=self.dir, every=0)
            self.walk(recorder, n_steps)
            with self.assertLogs("posthocema", "INFO") as logged:
                recorder.close()
            self.assertEqual(["closed before its first step" in line for line in logged.output], [not n_steps])

    def test_an_average_is_not_loaded_where_it_would_be_lost_or_cut(self):
        class Copying(torch.nn.Linear):
            """Its state is in 16 bits: writing into that would not change the model."""

            def _save_to_state_dict(self, destination, prefix, keep_vars):
                super()._save_to_state_dict(destination, prefix, keep_vars)
                destination.update({n: t.detach().half() for n, t in destination.items() if n.startswith(prefix)})

        def refuse(found, load, model):
            before = copy.deepcopy(model)
            with self.assertRaisesRegex(ph.InputsError, found):
                load(model)
            for old, new in zip(before.parameters(), model.parameters()):
                self.assertTrue(torch.equal(old, new))

        def lend(model):
            with recorder.copy_to(model):
                pass

        model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
        model.phase = torch.nn.Parameter(torch.randn(3, dtype=torch.complex64))
        recorder = Recorder(model, 0.1, dir=self.dir, every=2)
        self.walk(recorder, 4)
        with ph.open(self.dir) as series, series.plan(0.1) as plan:
            copying = copy.deepcopy(model)
            copying[1] = Copying(2, 2)
            for load in (plan.load_into, lend):
                refuse(r"'1.weight': state_dict\(\) makes a copy", load, copying)
            tied = copy.deepcopy(model)
            tied[1].weight = tied[0].weight
            refuse("'1.weight' and '0.weight': differ in the snapshots", plan.load_into, tied)
            with torch.no_grad():
                model[1].weight.copy_(model[0].weight)
            cut = copy.deepcopy(model)
            cut[0].weight = torch.nn.Parameter(torch.ones(2, 2, dtype=torch.int8), requires_grad=False)
            refuse("'0.weight': is F32, in the model torch.int8", plan.load_into, cut)
            real = copy.deepcopy(model)
            real.phase = torch.nn.Parameter(torch.ones(3))
            refuse("'phase': is C64, in the model torch.float32", plan.load_into, real)
            plan.load_into(model)
        for own in (Recorder(tied, 0.1, dir=self.dir / "tied", every=1), Recorder(Copying(2, 2), 0.1, dir=self.dir / "copying", every=1)):
            self.walk(own, 2)
        with ph.open(self.dir / "tied") as series, series.plan(0.1) as plan:
            plan.load_into(tied)
            self.assertTrue(torch.equal(tied[0].weight, plan.tensor("1.weight", kind="torch")))

    def test_a_model_that_cannot_get_an_average_trains_on(self):
        model = torch.nn.Linear(2, 2)
        model.register_buffer("ones", torch.ones(1).expand(4))  # torch writes into no such tensor
        recorder = Recorder(model, 0.1, every=0)
        self.walk(recorder, 2)
        weight = model.weight.detach().clone()
        with self.assertRaises(RuntimeError):
            recorder.copy_to().__enter__()
        self.assertTrue(torch.equal(model.weight, weight))
        self.walk(recorder)
        self.assertEqual(recorder.n_steps, 3)

    def test_tensors_are_made_on_the_processor_whatever_the_default_device(self):
        empty = torch.empty
        with unittest.mock.patch.object(torch, "empty", lambda *arguments, **options: empty(*arguments, **{"device": "meta", **options})):
            recorder = Recorder(torch.nn.Linear(2, 2), 0.1, dir=self.dir, every=1, background=True)
            self.walk(recorder)
            recorder.wait()
            with ph.open(self.dir) as series, series.plan(0.1) as plan:
                for made in (plan.state_dict(kind="torch"), dict(plan.iterate(kind="torch"))):
                    for name, average in recorder.average().items():
                        self.assertTrue(torch.equal(made[name], average), name)

    def test_an_average_is_loaded_whatever_wrappers_add_to_names(self):
        class Wrapper(torch.nn.Module):
            def __init__(self, module):
                super().__init__()
                self.module = module

        model = torch.nn.Sequential(torch.nn.Linear(2, 2))
        averaged = torch.optim.swa_utils.AveragedModel(model)  # has a counter
        for name, recorded in {"model": model, "wrapped": Wrapper(model), "averaged": averaged}.items():
            recorder = Recorder(recorded, 0.1, dir=self.dir / name, every=1)
            self.walk(recorder, 3)
            with ph.open(self.dir / name) as series, series.plan(0.1) as plan:
                for into in (model, Wrapper(model), Wrapper(Wrapper(model)), averaged):
                    plan.load_into(into)
                    loaded = (averaged.module if into is averaged else model)[0].weight
                    self.assertTrue(torch.equal(loaded, recorder.average()[list(recorder.average())[-2]]))
                    with torch.no_grad():
                        loaded += 1
                with self.assertRaisesRegex(ph.InputsError, "is not in the model"):
                    plan.load_into(torch.nn.ModuleDict({"a_module": model}))

    def test_options_may_be_written_in_several_ways(self):
        model = torch.nn.Linear(2, 2)
        for wrong in ({"dtype": "f64"}, {"dtype": torch.int8}, {"average_dtype": "f16"}, {"widths": "0.05:0.1"}, {"widths": []}):
            with self.assertRaisesRegex(ph.UsageError, f"{next(iter(wrong))}: "):
                Recorder(model, dir=self.dir, every=1, **wrong)
        with self.assertRaisesRegex(ph.UsageError, "dtype: expected"):
            Recorder(model, dir=self.dir, every=1).average(dtype="f8")
        for i, (dtype, widths, times) in enumerate((("f16", "0.05,0.1", "2:6:2"), (torch.float16, (w / 100 for w in (5, 10)), (2, 4, 6)))):
            recorder = Recorder(model, widths, dir=self.dir / str(i), times=times, dtype=dtype, average_dtype="float64")
            self.assertEqual((recorder.widths, recorder.times), ((0.05, 0.1), {2, 4, 6}))
            self.assertEqual((recorder.dtype, recorder.average_dtype), (torch.float16, torch.float64))
            self.walk(recorder, 2)
            self.assertEqual(recorder.average(0.1, "bf16")["weight"].dtype, torch.bfloat16)
            expected = f"<posthocema.torch.Recorder: step 2, widths (0.05, 0.1), 2 tensors, to {self.dir / str(i)}>"
            self.assertEqual(repr(recorder), expected)

    def test_averages_have_the_dtype_that_is_asked_for(self):
        model = torch.nn.Linear(8, 8)
        model.phase = torch.nn.Parameter(torch.randn(5, dtype=torch.complex64))
        for options in ({}, {"compensate": False}, {"average_dtype": "f64"}):
            recorder = Recorder(model, 0.1, every=0, **options)
            self.walk(recorder, 5)
            exact = recorder.average(dtype="f64")
            before = recorder.average()
            for name, dtype in {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32, "f64": torch.float64}.items():
                average = recorder.average(dtype=name)
                self.assertEqual(average["weight"].dtype, dtype, options)
                self.assertTrue(torch.allclose(average["weight"].double(), exact["weight"], rtol=torch.finfo(dtype).eps, atol=0))
                self.assertEqual(average["phase"].dtype, torch.complex128 if name == "f64" else torch.complex64)
                self.assertLess(float((average["phase"] - exact["phase"]).abs().max()), 1e-5)
            held = copy.deepcopy(before)
            self.walk(recorder)
            self.assertTrue(all(torch.equal(before[name], held[name]) for name in held), "the training changes an average")

    def test_an_average_fits_a_model_of_the_same_names_only(self):
        model = torch.nn.Sequential(torch.nn.Linear(2, 2))
        recorder = Recorder(model, 0.1, dir=self.dir, every=0)
        recorder.step()
        longer = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
        for other in (torch.nn.Sequential(model), torch.nn.Linear(2, 2), longer, torch.nn.Sequential(torch.nn.Linear(2, 3))):
            before = [p.detach().clone() for p in other.parameters()]
            with self.assertRaises(ph.InputsError):
                with recorder.copy_to(other):
                    pass
            self.assertTrue(all(map(torch.equal, before, other.parameters())))

    def test_one_nan_is_said(self):
        model = torch.nn.Linear(2, 2)
        recorder = Recorder(model, 0.1, dir=self.dir, every=2)
        recorder.step()
        with torch.no_grad():
            model.bias[1] = float("nan")
        with self.assertLogs("posthocema", "WARNING") as said:
            recorder.step()
            self.walk(recorder, 2)
        self.assertEqual(len(said.records), 1)
        self.assertIn("step 2: 'bias' has NaN", said.output[0])

    def test_a_directory_that_cannot_be_written_is_refused_at_once(self):
        (self.dir / "file").touch()
        with self.assertRaises(ph.OutputError) as caught:
            Recorder(torch.nn.Linear(2, 2), dir=self.dir / "file" / "below", every=1)
        self.assertEqual(caught.exception.errno, errno.ENOTDIR)
        self.assertEqual(caught.exception.filename, str(self.dir / "file" / "below"))

    def test_a_snapshot_that_fails_names_its_path_and_may_be_a_warning(self):
        for on_error in ("raise", "warn"):
            directory = self.dir / on_error
            recorder = Recorder(torch.nn.Linear(2, 2), 0.1, dir=directory, every=2, on_error=on_error)
            self.walk(recorder)
            limits = resource.getrlimit(resource.RLIMIT_FSIZE)
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))  # a file system that is full at 100 bytes
            try:
                if on_error == "raise":
                    with self.assertRaises(ph.OutputError) as caught:
                        self.walk(recorder)
                    self.assertEqual((caught.exception.errno, caught.exception.filename), (errno.EFBIG, recorder.path(0.1)))
                else:
                    with self.assertLogs("posthocema", "WARNING") as said:
                        self.walk(recorder)
                    self.assertIn(recorder.path(0.1), said.output[0])
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            self.assertEqual((recorder.n_steps, list(directory.iterdir())), (2, []))
            self.walk(recorder, 2)  # the training goes on
            self.assertEqual([t for t, _ in find_snapshots(directory, "snapshot")], [4])

    def test_snapshots_written_beside_the_training_are_those_of_their_step(self):
        for dtype in ("f32", "f16"):
            for background in (False, True):
                directory = self.dir / f"{dtype}-{background}"
                training = Training(directory, dtype, times=range(1, 41), background=background, replace=True)
                with training.recorder:
                    training.advance(1, 40)
            names = sorted(p.name for p in directory.iterdir())
            self.assertEqual(len(names), 80)
            for name in names:
                self.assertEqual(tensors_of(directory / name), tensors_of(self.dir / f"{dtype}-False" / name), name)

    def hold_writes(self):
        """Lets writes of snapshots begin when the event is set."""
        event, plain = threading.Event(), recorder_module.write_files

        def held(*arguments, **options):
            event.wait(60)
            plain(*arguments, **options)

        recorder_module.write_files = held
        self.addCleanup(setattr, recorder_module, "write_files", plain)
        return event

    def test_training_waits_for_the_copy_alone(self):
        event = self.hold_writes()
        recorder = Recorder(torch.nn.Linear(2, 2), (0.05, 0.1), dir=self.dir, every=10, background=True)
        self.walk(recorder, 19)
        self.assertEqual((recorder.n_steps, list(self.dir.iterdir())), (19, []))
        self.assertFalse(recorder.is_saved)
        memory = [t.data_ptr() for held in recorder._memory for t in held.values()]
        threading.Timer(0.3, event.set).start()
        self.walk(recorder)  # is due: waits for the first ones
        self.assertEqual([t for t, _ in find_snapshots(self.dir, "snapshot")][:2], [10, 10])
        self.assertEqual(recorder.save(), [recorder.path(0.05), recorder.path(0.1)])
        recorder.state_dict()  # waits: a run that continues from step 20 would not write them
        self.assertEqual([t for t, _ in find_snapshots(self.dir, "snapshot")], [10, 10, 20, 20])
        self.assertTrue(recorder.is_saved)
        self.assertEqual(memory, [t.data_ptr() for held in recorder._memory for t in held.values()])
        self.walk(recorder, 3)
        recorder.close()
        self.assertEqual([t for t, _ in find_snapshots(self.dir, "snapshot")][-2:], [23, 23])

    def test_a_failure_beside_the_training_is_raised_or_a_warning(self):
        for on_error in ("raise", "warn"):
            directory = self.dir / on_error
            recorder = Recorder(torch.nn.Linear(2, 2), 0.1, dir=directory, every=4, on_error=on_error, background=True)
            limits = resource.getrlimit(resource.RLIMIT_FSIZE)
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
            try:
                with self.assertLogs("posthocema", "WARNING") as said:
                    self.walk(recorder, 4)
                    recorder._thread.join()
                    if on_error == "raise":
                        with self.assertRaises(ph.OutputError) as caught:
                            self.walk(recorder)
                        self.assertEqual(caught.exception.errno, errno.EFBIG)
                    else:
                        self.walk(recorder)
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            self.assertIn("step 4: no snapshot was written: " + str(directory / "snapshot-0000004-0.100"), said.output[0])
            self.assertEqual((len(said.output), recorder.n_steps, list(directory.iterdir())), (1, 5, []))
            self.walk(recorder, 3)
            recorder.close()
            self.assertEqual([t for t, _ in find_snapshots(directory, "snapshot")], [8])

    def test_one_nan_is_said_beside_the_training(self):
        model = torch.nn.Linear(2, 2)
        recorder = Recorder(model, 0.1, dir=self.dir, every=2, dtype="f16", background=True)
        self.walk(recorder, 3)
        with torch.no_grad():
            model.bias[1] = float("nan")
        with self.assertLogs("posthocema", "WARNING") as said:
            self.walk(recorder, 4)
            recorder.close()
        self.assertEqual([line.count("step 4: 'bias' has NaN") for line in said.output], [1])

    def test_too_large_averages_are_refused_before_the_training_goes_on(self):
        model = torch.nn.Linear(2, 2)
        recorder = Recorder(model, 0.1, dir=self.dir, every=1, dtype="f16", background=True)
        with torch.no_grad():
            model.weight.fill_(1e6)
        with self.assertRaisesRegex(ph.InputsError, "'weight': an average is too large"):
            recorder.step()
        self.assertEqual(list(self.dir.iterdir()), [])

    def test_a_process_that_ends_or_dies_leaves_whole_snapshots(self):
        code = "import os, sys, torch; from posthocema.torch import Recorder\n"
        code += "r = Recorder(torch.nn.Linear(400, 400), 0.1, dir=sys.argv[1], every=1, background=True, replace=True)\n"
        endless = code + "while True:\n    r.step()\n    print(r.n_steps, flush=True)"
        environment = {**os.environ, "PYTHONPATH": str(SOURCE / "python")}
        subprocess.run([sys.executable, "-c", code + "r.step()", str(self.dir)], env=environment, check=True)
        self.assertEqual(len(tensors_of(self.dir / "snapshot-0000001-0.100.safetensors")), 2)
        for last in (3, 8, 13):
            with subprocess.Popen([sys.executable, "-c", endless, str(self.dir)], env=environment, stdout=subprocess.PIPE) as child:
                for _ in range(last):
                    child.stdout.readline()
                child.kill()
            steps = [step for step, _ in find_snapshots(self.dir, "snapshot")]
            self.assertGreaterEqual(steps[-1], last - 1)
            for _, path in find_snapshots(self.dir, "snapshot"):
                self.assertEqual(len(tensors_of(path)), 2)

    def test_other_ranks_of_a_launcher_write_nothing(self):
        code = "import sys, torch; from posthocema.torch import Recorder\n"
        code += "r = Recorder(torch.nn.Linear(2, 2), 0.1, dir=sys.argv[1], every=1); r.step(); r.close()"
        for rank, n_files in (("1", 0), ("0", 1)):
            environment = {**os.environ, "PYTHONPATH": str(SOURCE / "python"), "RANK": rank, "WORLD_SIZE": "2"}
            subprocess.run([sys.executable, "-c", code, str(self.dir)], env=environment, check=True)
            self.assertEqual(len(list(self.dir.iterdir())), n_files)

    def test_states_of_other_recorders_are_refused(self):
        training = Training(self.dir / "other", torch.float32)
        state = training.recorder.state_dict()
        with self.assertRaises(ph.InputsError):
            training.recorder.load_state_dict({**state, "widths": [0.05]})
        halved = [{n: t.half() for n, t in a.items()} for a in state["averages"]]
        with self.assertRaises(ph.InputsError):
            training.recorder.load_state_dict({**state, "averages": halved})
        with self.assertRaises(ph.UsageError):
            training.recorder.save()
        for wrong in ((), (0.1, 0.1)):
            with self.assertRaises(ph.UsageError):
                Recorder(training.model, wrong, dir=self.dir, every=0)
        with self.assertRaises(ph.TargetError):
            Recorder(training.model, (0.5,), dir=self.dir, every=0)

    def test_what_is_no_state_is_refused_and_changes_nothing(self):
        recorder = Recorder(torch.nn.Linear(4, 1), dir=self.dir, every=0)
        self.walk(recorder, 5)
        recorder.save()
        state = copy.deepcopy(recorder.state_dict())
        self.walk(recorder)
        part = state["averages"][0]
        wrong = [(None, "version"), ([], "version"), ({}, "version")]
        wrong += [({k: v for k, v in state.items() if k != key}, key) for key in ("version", "widths", "n_steps", "run_id", "averages")]
        wrong += [({**state, key: value}, key) for key, values in {
            "version": (2, None), "widths": (None, 3, ["a", 2], [0.05]), "n_steps": ("5", -1, 2.5, None), "n_updated": ("5", -1, 6),
            "run_id": (None, 5, ""), "residuals": (5, [part], "ab", [part, {}]),
            "averages": (None, 3, [part], [1, 2], [part, {"weight": part["weight"]}], [part, {**part, "more": part["bias"]}],
                         [{"weight": 1, "bias": 2}] * 2, [{n: t.half() for n, t in part.items()}] * 2,
                         [part, {**part, "weight": part["weight"][:, :1]}]),
        }.items() for value in values]  # fmt: skip
        for given, key in wrong:
            with self.assertRaisesRegex(ph.InputsError, f"^{key}: ", msg=f"{key}: {given}"):
                recorder.load_state_dict(given)
        with self.assertRaisesRegex(ph.InputsError, r"'weight' is \[1, 1\] of torch.float32, was \[1, 4\]"):
            recorder.load_state_dict(given)
        before = recorder.average()
        with self.assertRaises(ph.OutputError):  # the directory has snapshots of this run
            recorder.load_state_dict({**state, "run_id": "other"})
        self.assertEqual((recorder.n_steps, recorder.run_id), (6, state["run_id"]))
        self.assertTrue(all(torch.equal(before[n], t) for n, t in recorder.average().items()))
        recorder.load_state_dict(state)
        self.assertEqual(recorder.n_steps, 5)

    def test_the_examples_of_the_documents_run(self):
        pages = (SOURCE / "python/README.md", *sorted((SOURCE / "docs/python").glob("*.md")))
        text = "".join(page.read_text() for page in pages)
        blocks = [b for b in re.findall(r"^```python\n(.*?)^```$", text, flags=re.S | re.M) if "import torch" in b]
        blocks = [b for b in blocks if "lightning" not in b]  # which test_trainers.py runs
        self.assertGreater(len(blocks), 3)
        environment = {**os.environ, "PYTHONPATH": str(SOURCE / "python")}
        for block in blocks:
            with tempfile.TemporaryDirectory() as directory:
                done = subprocess.run([sys.executable, "-c", block], cwd=directory, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.assertEqual(done.returncode, 0, f"{block}\n{done.stdout.decode()}")

    def test_a_model_gets_its_own_parameters_back(self):
        training = Training(self.dir / "copy", torch.float32)
        training.advance(1, 5)
        before = {n: t.clone() for n, t in training.model.state_dict().items()}
        with training.recorder.copy_to(training.model, 0.10) as model:
            self.assertFalse(torch.equal(model.first.weight, before["first.weight"]))
        self.assertTrue(all(torch.equal(t, before[n]) for n, t in training.model.state_dict().items()))


if __name__ == "__main__":
    unittest.main()
