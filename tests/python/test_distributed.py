# SPDX-License-Identifier: Apache-2.0
"""The recorder in two processes (gloo): DistributedDataParallel, sharded parameters (DTensor) and those of fully_shard
with distributed checkpoints. Each part is a training of its own, which new processes continue.

    tests/python/test_distributed.py PROGRAM LIBRARY

Status 77: this torch is too old.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
os.environ["POSTHOC_EMA_LIBRARY"] = os.path.abspath(sys.argv[2])
ARGUMENTS = [os.path.abspath(__file__), *(os.path.abspath(a) for a in sys.argv[1:3])]
CHILD = sys.argv[3:]
del sys.argv[1:]
sys.path.insert(0, str(SOURCE / "python"))

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

import posthocema as ph  # noqa: E402
from posthocema.torch import Recorder  # noqa: E402

try:
    import torch.distributed.checkpoint as dcp
    from torch.distributed import tensor
except ImportError:
    dcp = tensor = None
HAS_FULLY_SHARD = tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 7)
if HAS_FULLY_SHARD:  # torch 1.13 cannot even import the module under Python 3.11
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
N_RANKS, STEPS, EVERY = 2, 40, 10
DTYPES = {"fsdp": torch.float32, "fsdp-bf16": torch.bfloat16}  # of parameters under fully_shard; it computes in bf16


class Model(torch.nn.Module):
    """Parameters that do not divide among two processes, tied and frozen ones, an integer buffer."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(7, 13)
        self.tied = torch.nn.Linear(13, 13, bias=False)
        self.again = torch.nn.Linear(13, 13, bias=False)
        self.again.weight = self.tied.weight
        self.frozen = torch.nn.Linear(13, 1)
        self.frozen.requires_grad_(False)
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        return self.frozen(self.again(torch.tanh(self.tied(torch.relu(self.first(x))))))


def shard(name, module, mesh):
    for key, parameter in list(module._parameters.items()):
        if parameter is not None and not hasattr(parameter, "to_local"):
            whole = tensor.distribute_tensor(parameter.detach(), mesh, [tensor.Shard(0)])
            module._parameters[key] = torch.nn.Parameter(whole, requires_grad=parameter.requires_grad)


class Training:
    def __init__(self, kind, directory):
        torch.manual_seed(1)
        plain = Model().to(DTYPES.get(kind, torch.float32))
        self.kind = kind
        mesh = None if kind == "ddp" else dist.device_mesh.init_device_mesh("cpu", (N_RANKS,))
        if kind == "shards":  # as FSDP2 has them between steps
            self.model = tensor.distribute_module(plain, mesh, shard)
            plain.again.weight = plain.tied.weight
        elif kind in DTYPES:  # the outer module keeps its whole parameters after a forward pass
            policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
            fully_shard(plain.first, mesh=mesh, mp_policy=policy)
            self.model = fully_shard(plain, mesh=mesh, mp_policy=policy)
        else:
            self.model = torch.nn.parallel.DistributedDataParallel(plain)
        self.plain = plain
        self.optimizer = torch.optim.SGD([p for p in self.model.parameters() if p.requires_grad], lr=0.05, momentum=0.9)
        self.recorder = Recorder(self.model, (0.05, 0.1), dir=directory, every=EVERY)
        if kind not in DTYPES:
            self.recorder.attach(self.optimizer)
        self.truth = {}

    def whole(self):
        return {
            n: (t.full_tensor() if hasattr(t, "full_tensor") else t).detach().double()
            for n, t in self.plain.state_dict().items()
        }

    def evaluate(self, x):
        """The model computes with the average inside of the block, and with its own parameters after it."""
        own = self.model(x)
        reference = Model().to(torch.bfloat16)
        averages = self.recorder.average(0.1)
        whole = {n: a.full_tensor() if hasattr(a, "full_tensor") else a for n, a in averages.items()}
        reference.load_state_dict(whole, strict=False)
        with self.recorder.copy_to(self.model, 0.1):
            assert torch.equal(self.model(x), reference(x.bfloat16()))
        assert not torch.equal(own, reference(x.bfloat16()))
        assert torch.equal(self.model(x), own)

    def advance(self, first, last):
        for step in range(first, last + 1):
            torch.manual_seed(1000 * step + (0 if self.kind == "shards" else dist.get_rank()))
            x = torch.randn(16, 7)
            y = x[:, :1].sin()
            if self.kind == "shards":
                x, y = (tensor.DTensor.from_local(t, self.plain.first.weight.device_mesh) for t in (x, y))
            self.optimizer.zero_grad()
            ((self.model(x) - y) ** 2).mean().backward()
            self.plain.count += 1
            self.optimizer.step()
            if self.kind in DTYPES:
                # A run that is not continued does neither: both leave no trace in its snapshots.
                with torch.no_grad():
                    if first > 1:
                        self.model(x)
                    self.recorder.step()
                    if first > 1:
                        self.evaluate(x)
            weight = 1 - (1 - 1 / step) ** (ph.gamma(0.1) + 1)
            for name, value in self.whole().items():
                old = self.truth.setdefault(name, torch.zeros_like(value))
                old += weight * (value - old)


def train(kind, directory, first, last, state, before):
    training = Training(kind, directory)
    rank = dist.get_rank()
    held = {
        "model": training.plain.state_dict(),
        "momentum": {
            str(i): torch.zeros_like(p) for i, p in enumerate(training.optimizer.param_groups[0]["params"])
        },
        "ema": training.recorder.state_dict(),
        "truth": {name: torch.zeros_like(t) for name, t in training.whole().items()},
    }
    parameters = training.optimizer.param_groups[0]["params"]
    if first > 1:
        if kind != "ddp":
            dcp.load(held, checkpoint_id=before)
        else:
            held = torch.load(f"{before}.pt")
        training.plain.load_state_dict(held["model"])
        training.recorder.load_state_dict(held["ema"])
        training.truth = held["truth"]
        for i, parameter in enumerate(parameters):
            training.optimizer.state[parameter]["momentum_buffer"] = held["momentum"][str(i)]
    training.advance(first, last)
    if kind == "ddp":
        with training.recorder.copy_to(training.model, 0.1, broadcast=True):  # the same everywhere
            mine = torch.cat([t.flatten() for t in training.whole().values()])
            others = mine.clone()
            dist.broadcast(others, 0)
            assert torch.equal(mine, others)
        if rank:
            try:
                with training.recorder.copy_to(training.model):
                    raise AssertionError("rank 1 has averages")
            except ph.UsageError:
                pass
    else:
        own = training.whole()["first.weight"]
        with training.recorder.copy_to(training.model, 0.1):
            assert not torch.equal(training.whole()["first.weight"], own)
        assert torch.equal(training.whole()["first.weight"], own)
    held = {
        "model": training.plain.state_dict(),
        "momentum": {str(i): training.optimizer.state[p]["momentum_buffer"] for i, p in enumerate(parameters)},
        "ema": training.recorder.state_dict(),
        "truth": training.truth,
    }
    if kind != "ddp":
        dcp.save(held, checkpoint_id=state)
    elif rank == 0:
        torch.save(held, f"{state}.pt")
    if kind != "ddp":  # a failure in one process is one in all, and leaves nothing
        training.recorder.dtype = torch.float16
        if rank:
            training.recorder._averages[1][0] += 1e6
        training.recorder.n_steps += 1
        try:
            training.recorder.save()
            raise AssertionError("an average that is too large was written")
        except ph.InputsError:
            pass
        training.recorder.dtype = torch.float32
        directory, training.recorder.dir = training.recorder.dir, f"{training.recorder.dir}/snapshot-file/below"
        if not rank:
            pathlib.Path(f"{directory}/snapshot-file").touch()
        try:
            training.recorder.save()
            raise AssertionError("a snapshot was written below a file")
        except ph.OutputError as error:
            assert "snapshot-file" in str(error)
        dist.barrier()
        if not rank:
            os.unlink(f"{directory}/snapshot-file")


if CHILD:  # RANK MEETING KIND DIRECTORY FIRST LAST STATE STATE_BEFORE
    rank, meeting, kind, directory, first, last, state, before = CHILD
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=int(rank), world_size=N_RANKS)
    train(kind, directory, int(first), int(last), state, before)
    dist.barrier()
    pathlib.Path(f"{state}.finished-{rank}").touch()
    sys.stdout.flush()
    os._exit(0)  # the end of a process group can wait for ever


def end_of(process):
    """The status; what still runs after ten minutes hangs, and is ended."""
    try:
        return process.wait(timeout=600)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return "hangs"


class Processes(unittest.TestCase):
    def setUp(self):
        self.holder = tempfile.TemporaryDirectory()
        self.addCleanup(self.holder.cleanup)
        self.dir = pathlib.Path(self.holder.name)

    def train(self, kind, name, stops):
        directory, first, before = self.dir / name, 1, None
        for last in stops:
            meeting = self.dir / f"{name}-{first}.meeting"
            state = self.dir / f"{name}-state-{last}"
            with tempfile.TemporaryFile() as said:
                common = [str(meeting), kind, str(directory), str(first), str(last), str(state), str(before)]
                ranks = [
                    subprocess.Popen([sys.executable, *ARGUMENTS, str(rank), *common], stdout=said, stderr=said)
                    for rank in range(N_RANKS)
                ]
                ended = [end_of(rank) for rank in ranks]
                said.seek(0)
                self.assertEqual(ended, [0] * N_RANKS, said.read().decode())
            self.assertTrue(all(os.path.exists(f"{state}.finished-{rank}") for rank in range(N_RANKS)))
            first, before = last + 1, state
        return directory, state

    def check(self, directory, truth, dtype=torch.float32):
        with ph.open(directory) as series, series.plan(0.1) as plan:
            self.assertEqual(len(series), 2 * STEPS // EVERY)
            self.assertEqual({s.sigma_rel for s in series.snapshots}, {0.05, 0.1})
            self.assertEqual({s.time for s in series.snapshots}, set(range(EVERY, STEPS + 1, EVERY)))
            made = plan.state_dict(dtype="f32", kind="torch")
        self.assertEqual(set(made), set(truth))
        for name, value in truth.items():
            if name != "count":
                self.assertLess(float((made[name].double() - value).norm() / value.norm()), 1e-6, name)
        self.assertEqual(int(made["count"]), STEPS)
        torch.manual_seed(1)
        self.assertTrue(torch.equal(made["frozen.weight"], Model().frozen.weight.to(dtype).float()))
        self.assertTrue(torch.equal(made["tied.weight"], made["again.weight"]))

    def tensors(self, directory):
        """Every snapshot, whole."""
        self.assertFalse(list(directory.glob("*.partial")))
        found = {}
        with ph.open(directory) as series:
            for snapshot in series.snapshots:
                with series.plan(snapshot.sigma_rel, at=snapshot.named_time, metric="walk") as plan:
                    self.assertAlmostEqual(max(plan.targets[0].weights), 1, delta=1e-6)
                    found[snapshot.file] = {n: bytes(t) for n, t in plan.iterate(kind="buffer")}
        return found

    def test_one_process_writes_under_ddp_and_a_resumed_run_is_the_same(self):
        directory, state = self.train("ddp", "ddp", [17, STEPS])
        self.check(directory, torch.load(f"{state}.pt")["truth"])
        once, _ = self.train("ddp", "once", [STEPS])
        names = sorted(p.name for p in directory.iterdir())
        self.assertEqual(names, sorted(p.name for p in once.iterdir()))
        for name in names:
            same = [(d / name).read_bytes().split(b"}}", 1)[1] for d in (directory, once)]
            self.assertEqual(same[0], same[1], name)

    def check_shards(self, kind):
        directory, state = self.train(kind, kind, [17, STEPS])
        truth = {"truth": {name: torch.zeros(t.shape, dtype=torch.float64) for name, t in Model().state_dict().items()}}
        dcp.load(truth, checkpoint_id=str(state))
        self.check(directory, truth["truth"], DTYPES.get(kind, torch.float32))
        once, _ = self.train(kind, kind + "-once", [STEPS])
        self.assertEqual(sorted(p.name for p in directory.iterdir()), sorted(p.name for p in once.iterdir()))
        self.assertEqual(self.tensors(directory), self.tensors(once))

    def test_each_process_writes_its_shards_and_a_resumed_run_is_the_same(self):
        if not hasattr(tensor, "distribute_module"):
            self.skipTest("needs torch 2.5 or later")
        self.check_shards("shards")

    def test_a_model_of_fully_shard_is_averaged_in_its_shards(self):
        if not HAS_FULLY_SHARD:
            self.skipTest("fully_shard computes on the processor from torch 2.7 on")
        for kind in DTYPES:
            with self.subTest(kind):
                self.check_shards(kind)


if __name__ == "__main__":
    if not dist.is_available() or not dist.is_gloo_available():
        print("skipped: torch has no gloo; to run it: apt-get install --reinstall python3-torch")
        sys.exit(77)
    unittest.main()
