# SPDX-License-Identifier: Apache-2.0
"""The callbacks for Lightning and transformers, in trainings of these libraries that a new process continues,
against averages in float64.

    tests/python/test_trainers.py PROGRAM LIBRARY       scripts/trainers installs what it needs
"""
import importlib.util
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
os.environ["POSTHOC_EMA_LIBRARY"] = os.path.abspath(sys.argv[2])
os.environ.update(HF_HUB_OFFLINE="1", CUDA_VISIBLE_DEVICES="")
ARGUMENTS = [os.path.abspath(__file__), *(os.path.abspath(a) for a in sys.argv[1:3])]
CHILD = sys.argv[3:]
del sys.argv[1:]
sys.path.insert(0, str(SOURCE / "python"))

import torch  # noqa: E402

import posthocema as ph  # noqa: E402

STEPS, HALF = 195, 90


class Truth:
    """The average 0.08 in float64, of the steps of an optimizer, on disk between processes."""

    def __init__(self, model, path):
        self.model, self.path, self.step, self.averages = model, path, 0, {}
        if os.path.exists(path):
            self.step, self.averages = torch.load(path)

    def follow(self, *_):
        self.step += 1
        weight = 1 - (1 - 1 / self.step) ** (ph.gamma(0.08) + 1)
        for name, tensor in self.model.state_dict().items():
            old = self.averages.setdefault(name, torch.zeros_like(tensor, dtype=torch.float64))
            old += weight * (tensor.double() - old)
        if self.step in (HALF, STEPS):
            torch.save((self.step, self.averages), self.path)


def network():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 4))


def data():
    torch.manual_seed(2)
    x = torch.randn(512, 8)
    return x, x[:, :4].sin()


def train_with_lightning(directory, last):
    import lightning.pytorch as pl
    from posthocema.lightning import LightningRecorder

    class Module(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.network = network()

        def training_step(self, batch, index):
            x, y = batch
            return ((self.network(x) - y) ** 2).mean()

        def configure_optimizers(self):
            optimizer = torch.optim.Adam(self.parameters(), lr=0.01)
            self.truth = Truth(self, directory / "truth.pt")
            step = optimizer.step

            def stepped(*arguments, **options):
                result = step(*arguments, **options)
                self.truth.follow()
                return result

            optimizer.step = stepped
            return optimizer

    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*data()), batch_size=16)
    checkpoint = directory / "half.ckpt"

    def trainer():
        callback = LightningRecorder((0.05, 0.1), every=10, dtype=torch.float16)
        return callback, pl.Trainer(
            max_steps=last, callbacks=[callback], default_root_dir=directory, logger=False, enable_progress_bar=False,
            enable_model_summary=False, accelerator="cpu", enable_checkpointing=False, accumulate_grad_batches=2,
        )  # fmt: skip

    try:
        LightningRecorder((0.05, 0.1))
        raise AssertionError("a recorder that would write nothing was made")
    except ph.UsageError:
        pass
    if last == STEPS:
        held = torch.load(checkpoint, weights_only=False)
        held["callbacks"] = {}
        torch.save(held, directory / "without.ckpt")
        callback, made = trainer()
        try:
            made.fit(Module(), loader, ckpt_path=str(directory / "without.ckpt"))
            raise AssertionError("averages began anew in the middle")
        except ph.InputsError:
            pass
    callback, made = trainer()
    made.fit(Module(), loader, ckpt_path=str(checkpoint) if last == STEPS else None)
    assert callback.recorder.n_steps == last, callback.recorder.n_steps
    if last == HALF:
        made.save_checkpoint(str(checkpoint))


def train_two_with_lightning(directory, last):
    """Two recorders in one trainer, each of a submodule and its optimizer; validation has an average of each."""
    import lightning.pytorch as pl
    from lightning.pytorch.callbacks import ModelCheckpoint
    from posthocema.lightning import LightningRecorder

    class Gan(pl.LightningModule):
        automatic_optimization = False

        def __init__(self):
            super().__init__()
            self.generator, self.critic, self.seen = network(), network(), []

        def training_step(self, batch, index):
            x, y = batch
            for module, optimizer in zip((self.generator, self.critic), self.optimizers()):
                if module is self.generator or index % 2 == 0:
                    optimizer.zero_grad()
                    self.manual_backward(((module(x) - y) ** 2).mean())
                    optimizer.step()

        def validation_step(self, batch, index):
            if not self.trainer.sanity_checking and index == 0:
                self.seen.append({name: t.clone() for name, t in self.state_dict().items()})
                own = [c.recorder.average(0.1) for c in recorders if c.recorder]
                for prefix, average in zip(("generator.", "critic."), own):
                    assert all(torch.equal(self.seen[-1][prefix + n], t) for n, t in average.items())
            x, y = batch
            self.log("loss", ((self.generator(x) - y) ** 2).mean())

        def on_train_start(self):
            self.begun = {name: t.clone() for name, t in self.state_dict().items()}

        def configure_optimizers(self):
            return [torch.optim.Adam(module.parameters(), lr=0.01) for module in (self.generator, self.critic)]

    def make(directory=directory):
        one = LightningRecorder((0.05, 0.1), every=10, module="generator", evaluate=0.1)
        two = LightningRecorder((0.05, 0.1), every=10, module="critic", optimizer=1, evaluate=0.1)
        best = ModelCheckpoint(dirpath=directory / "best", monitor="loss", save_last=True)
        return [one, two], best, pl.Trainer(
            max_epochs=last, callbacks=[best, one, two], default_root_dir=directory, logger=False, enable_progress_bar=False,
            enable_model_summary=False, accelerator="cpu",
        )  # fmt: skip

    for wrong in (0.2, "0.1"):
        try:
            LightningRecorder((0.05, 0.1), every=10, evaluate=wrong)
            raise AssertionError("a width that is not recorded would be evaluated")
        except (ph.UsageError, TypeError):
            pass
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*data()), batch_size=32)
    recorders, best, trainer = make()
    model = Gan()
    trainer.fit(model, loader, loader)
    assert [c.recorder.n_steps for c in recorders] == [16 * last, 8 * last], [c.recorder.n_steps for c in recorders]
    held = torch.load(best.last_model_path, weights_only=False)
    own = {name: t.clone() for name, t in model.state_dict().items()}
    assert len(model.seen) == last and not torch.equal(model.seen[-1]["critic.0.weight"], own["critic.0.weight"])
    assert all(torch.equal(held["state_dict"][n], t) for n, t in model.seen[-1].items())
    assert all(torch.equal(held["current_model_state"][n], t) for n, t in own.items())
    assert float(trainer.callback_metrics["loss"]) == float(best.current_score)
    assert {path.name for path in directory.iterdir()} >= {"snapshots-generator", "snapshots-critic"}
    torch.manual_seed(3)
    again = Gan()
    recorders, _, trainer = make()
    trainer.fit_loop.max_epochs = last + 1
    trainer.fit(again, loader, loader, ckpt_path=best.last_model_path)
    assert all(torch.equal(again.begun[n], t) for n, t in own.items())
    assert [c.recorder.n_steps for c in recorders] == [16 * (last + 1), 8 * (last + 1)]
    (path,) = [str(p) for p in (directory / "best").glob("epoch*") if "v1" not in p.name][:1]
    plain = Gan()
    plain.load_state_dict(torch.load(path, weights_only=False)["state_dict"])
    recorders, best, trainer = make(directory / "weights")
    best.save_weights_only = True
    with unittest.TestCase().assertLogs("posthocema", "WARNING") as said:
        trainer.fit(Gan(), loader, loader)
    assert "save_weights_only=True have the training's parameters" in said.output[0], said.output


def evaluate_with_transformers(directory, last):
    """Metrics, checkpoints and the best model are those of an average, and the training does not feel it."""
    from posthocema.transformers import TransformersRecorder
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

    def make(evaluate, name):
        torch.manual_seed(1)
        model = GPT2LMHeadModel(GPT2Config(
            n_layer=1, n_embd=16, n_head=2, vocab_size=50, n_positions=8, bos_token_id=0, eos_token_id=1, resid_pdrop=0,
        ))  # fmt: skip
        rows = [{"input_ids": ids, "labels": ids} for ids in torch.randint(0, 50, (64, 8))]
        arguments = TrainingArguments(
            output_dir=str(directory / name), max_steps=last, per_device_train_batch_size=8, eval_steps=10, save_steps=10,
            eval_strategy="steps", load_best_model_at_end=evaluate is not None, report_to=[], disable_tqdm=True, use_cpu=True,
            learning_rate=0.01,
        )  # fmt: skip
        recorder = TransformersRecorder((0.05, 0.1), every=10, evaluate=evaluate)
        own = []

        class See(TrainerCallback):
            def on_step_begin(self, args, state, control, model=None, **_):
                own.append(model.lm_head.weight.detach().clone())

        return model, recorder, own, Trainer(
            model=model, args=arguments, train_dataset=rows, eval_dataset=rows, callbacks=[recorder, See()]
        )

    _, _, plain, trainer = make(None, "plain")
    trainer.train()
    raw = [row["eval_loss"] for row in trainer.state.log_history if "eval_loss" in row]
    model, callback, own, trainer = make(0.1, "averaged")
    trainer.train()
    assert len(own) == last and all(map(torch.equal, own, plain))
    losses = [row["eval_loss"] for row in trainer.state.log_history if "eval_loss" in row]
    assert len(losses) == len(raw) == last // 10 and all(a != b for a, b in zip(losses, raw))
    for step in range(10, last + 1, 10):
        loaded = GPT2LMHeadModel.from_pretrained(directory / f"averaged/checkpoint-{step}/average")
        with ph.open(directory / "averaged/snapshots") as series:
            (path,) = [s.file for s in series if s.time == step and s.sigma_rel == 0.1]
        with ph.open(directory / "averaged/snapshots", from_=step, to=step) as series, series.plan(0.1, metric="walk") as plan:
            plan.load_into(model)
        off = max(float((t - loaded.state_dict()[n]).abs().max()) for n, t in model.state_dict().items())
        assert off < 1e-6, off
        found = Trainer(model=loaded, args=trainer.args, eval_dataset=trainer.eval_dataset).evaluate()["eval_loss"]
        assert abs(found - losses[step // 10 - 1]) < 1e-5, (found, losses)
    model, callback, own, trainer = make(0.1, "best")
    trainer.train()
    found = trainer.evaluate()["eval_loss"]
    assert abs(found - min(losses)) < 1e-5, (found, losses)


def train_with_transformers(directory, last):
    from posthocema.transformers import TransformersRecorder
    from transformers import Trainer, TrainerCallback, TrainingArguments

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.network = network()

        def forward(self, x=None, labels=None):
            y = self.network(x)
            return {"loss": ((y - labels) ** 2).mean(), "logits": y}

    class Follow(TrainerCallback):
        def on_train_begin(self, args, state, control, model=None, **_):
            self.truth = Truth(model, directory / "truth.pt")

        def on_step_end(self, args, state, control, **_):
            self.truth.follow()

    x, y = data()
    arguments = TrainingArguments(
        output_dir=str(directory), max_steps=last, per_device_train_batch_size=16, save_steps=HALF, logging_steps=1000,
        report_to=[], disable_tqdm=True, learning_rate=0.01, gradient_accumulation_steps=2, use_cpu=True,
        lr_scheduler_type="constant",
    )  # fmt: skip

    def trainer(**options):
        callback = TransformersRecorder((0.05, 0.1), every=10, dtype=torch.float16, **options)
        rows = [{"x": a, "labels": b} for a, b in zip(x, y)]
        return callback, Trainer(model=Model(), args=arguments, train_dataset=rows, callbacks=[callback, Follow()])

    if last == STEPS:
        callback, made = trainer(resume_from=directory)
        try:
            made.train(resume_from_checkpoint=str(directory / f"checkpoint-{HALF}"))
            raise AssertionError("averages began anew in the middle")
        except ph.InputsError:
            pass
    callback, made = trainer()
    if last == STEPS:  # a checkpoint that was moved
        (directory / f"checkpoint-{HALF}").rename(directory / "moved")
    made.train(resume_from_checkpoint=str(directory / "moved") if last == STEPS else None)
    assert callback.recorder.n_steps == last, callback.recorder.n_steps


def make_a_model_folder(directory, _):
    """Of a model whose embedding is tied to its head, from snapshots."""
    from posthocema.torch import Recorder
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(1)
    model = GPT2LMHeadModel(GPT2Config(n_layer=1, n_embd=16, n_head=2, vocab_size=50, n_positions=8, bos_token_id=0, eos_token_id=1))
    model.save_pretrained(directory / "base", max_shard_size="20KB")
    with Recorder(model, dir=directory / "snapshots", every=5) as recorder:
        for _ in range(30):
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.add_(torch.randn_like(parameter), alpha=0.01)
            recorder.step()
    with ph.open(directory / "snapshots") as series, series.plan([0.1, 0.15]) as plan:
        for width, dtype in ((0.15, None), (0.1, torch.bfloat16)):
            plan.save_pretrained(directory / f"{width}", width, like=directory / "base", dtype=dtype)
            loaded = GPT2LMHeadModel.from_pretrained(directory / f"{width}")
            expected = plan.state_dict(width, kind="torch", dtype=dtype)
            assert loaded.dtype == (dtype or torch.float32) and loaded.lm_head.weight is loaded.transformer.wte.weight
            assert all(torch.equal(t, expected[n]) for n, t in loaded.state_dict().items())


if CHILD:  # KIND DIRECTORY LAST
    torch.set_num_threads(1)
    kinds = {
        "lightning": train_with_lightning, "transformers": train_with_transformers, "folder": make_a_model_folder,
        "two": train_two_with_lightning, "evaluate": evaluate_with_transformers,
    }  # fmt: skip
    kinds[CHILD[0]](pathlib.Path(CHILD[1]), int(CHILD[2]))
    sys.exit()


WITH_DEEPSPEED = """
import os, sys
os.environ.update(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", MASTER_ADDR="127.0.0.1", MASTER_PORT=sys.argv[2], DS_ACCELERATOR="cpu")
import deepspeed, torch
from posthocema.torch import Recorder
deepspeed.init_distributed("gloo")
model, stage = torch.nn.Linear(4, 4), int(sys.argv[1])
engine, optimizer, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config={
    "train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": stage}, "bf16": {"enabled": True},
    "optimizer": {"type": "SGD", "params": {"lr": 0.1}}, "zero_allow_untested_optimizer": True})
try:
    recorder = Recorder(engine.module, 0.1, every=0)
    recorder.attach(optimizer)
except Exception as error:
    print("refused:", error)
if stage < 3:
    total = 0
    for k in range(1, 11):
        engine.backward(engine(torch.randn(2, 4).bfloat16()).float().square().mean())
        engine.step()
        recorder.step()
        weight = 1 - (1 - 1 / k) ** (recorder._gammas[0] + 1)
        total = weight * model.weight.detach().double() + (1 - weight) * total
    print("error:", float((recorder.average()["weight"] - total).norm() / total.norm()) < 1e-6)
"""


TRAINER_WITH_DEEPSPEED = """
import os, sys
os.environ.update(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", MASTER_ADDR="127.0.0.1", MASTER_PORT=sys.argv[2], DS_ACCELERATOR="cpu")
os.environ["ACCELERATE_USE_DEEPSPEED"] = "true"
import torch
from posthocema.transformers import TransformersRecorder
from transformers import Trainer, TrainerCallback, TrainingArguments

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x=None, labels=None):
        y = self.linear(x)
        return {"loss": (y - labels).square().mean(), "logits": y}

class Follow(TrainerCallback):
    step = total = 0

    def on_step_end(self, args, state, control, model=None, **_):
        Follow.step += 1
        weight = 1 - (1 - 1 / Follow.step) ** (callback.recorder._gammas[0] + 1)
        Follow.total = weight * model.linear.weight.detach().double() + (1 - weight) * Follow.total

callback = TransformersRecorder((0.1,), every=4)
config = {"zero_optimization": {"stage": int(sys.argv[1])}, "train_micro_batch_size_per_gpu": 4,
          "zero_allow_untested_optimizer": True, "gradient_accumulation_steps": 1}
arguments = TrainingArguments("run", max_steps=12, per_device_train_batch_size=4, report_to=[], save_strategy="no", deepspeed=config)
data = [{"x": torch.randn(4), "labels": torch.randn(4)} for _ in range(64)]
Trainer(Model(), arguments, train_dataset=data, callbacks=[callback, Follow()]).train()
found = callback.recorder.average()["linear.weight"]
print("error:", callback.recorder.n_steps == 12 and float((found - Follow.total).norm() / found.norm()) < 1e-6)
"""


class Trainers(unittest.TestCase):
    def test_the_example_of_the_document_runs(self):
        text = (SOURCE / "docs/python/evaluate.md").read_text()
        [block] = [b for b in re.findall(r"^```python\n(.*?)^```$", text, flags=re.S | re.M) if "lightning" in b]
        with tempfile.TemporaryDirectory() as directory:
            environment = {**os.environ, "PYTHONPATH": str(SOURCE / "python")}
            code = block + "print(best.best_model_score, recorder.recorder)\nimport os; print(len(os.listdir('snapshots')))"
            done = subprocess.run([sys.executable, "-c", code], cwd=directory, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertEqual(done.stdout.decode().splitlines()[-1], "8")  # two widths, at 4, 8, 12 and 16

    @unittest.skipUnless(importlib.util.find_spec("accelerate"), "needs accelerate")
    def test_an_optimizer_of_accelerate_is_attached(self):
        from accelerate import Accelerator
        from posthocema.torch import Recorder

        model = network()
        accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
        model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1))
        recorder = Recorder(model, 0.08, every=0)
        recorder.attach(optimizer)
        truth = Truth(model, "nowhere.pt")
        for i in range(20):
            with accelerator.accumulate(model):
                accelerator.backward(model(torch.randn(4, 8)).square().mean())
                optimizer.step()
                optimizer.zero_grad()
            if i % 2:
                truth.follow()
        self.assertEqual(recorder.n_steps, 10)
        for name, average in recorder.average().items():
            self.assertLess(float((average - truth.averages[name]).norm() / average.norm()), 1e-6)

    @unittest.skipUnless(importlib.util.find_spec("deepspeed"), "needs deepspeed")
    def test_with_deepspeed_steps_of_the_engine_count(self):
        environment = {**os.environ, "PYTHONPATH": str(SOURCE / "python")}
        for code, stage, expected in (
            (WITH_DEEPSPEED, 2, ["refused: attach: DeepSpeed", "error: True"]),
            (WITH_DEEPSPEED, 3, ["refused: DeepSpeed's ZeRO stage 3"]),
            (TRAINER_WITH_DEEPSPEED, 0, ["error: True"]),
            (TRAINER_WITH_DEEPSPEED, 2, ["error: True"]),
        ):
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            with tempfile.TemporaryDirectory() as directory:
                command = [sys.executable, "-c", code, str(stage), str(port)]
                out = subprocess.run(
                    command, cwd=directory, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
                ).stdout
            found = [line for line in out.splitlines() if line.startswith(("refused", "error"))]
            self.assertEqual(len(found), len(expected), out)
            for line, beginning in zip(found, expected):
                self.assertTrue(line.startswith(beginning), line)

    def setUp(self):
        self.holder = tempfile.TemporaryDirectory()
        self.addCleanup(self.holder.cleanup)
        self.dir = pathlib.Path(self.holder.name)

    def run_child(self, kind, last=0):
        done = subprocess.run(
            [sys.executable, *ARGUMENTS, kind, str(self.dir), str(last)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        self.assertEqual(done.returncode, 0, done.stdout.decode(errors="replace"))

    def check(self, kind, prefix):
        for last in (HALF, STEPS):
            self.run_child(kind, last)
        step, truth = torch.load(self.dir / "truth.pt")
        self.assertEqual(step, STEPS)
        with ph.open(self.dir / "snapshots") as series, series.plan(0.08) as plan:
            self.assertEqual({s.time for s in series.snapshots}, {*range(10, STEPS, 10), STEPS})
            made = plan.state_dict(dtype="f32", kind="torch")
        self.assertEqual(set(made), set(truth))
        self.assertTrue(all(name.startswith(prefix) for name in made))
        off = sum(float(((made[n].double() - t) ** 2).sum()) for n, t in truth.items())
        self.assertLess((off / sum(float((t**2).sum()) for t in truth.values())) ** 0.5, 2e-4)

    def test_lightning(self):
        self.check("lightning", "network.")

    def test_lightning_evaluates_averages_of_two_modules(self):
        self.run_child("two", 4)

    def test_transformers_evaluates_an_average(self):
        self.run_child("evaluate", 40)

    def test_from_pretrained_loads_an_average(self):
        self.run_child("folder")

    def test_transformers(self):
        self.check("transformers", "network.")


if __name__ == "__main__":
    unittest.main()
