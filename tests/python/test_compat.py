# SPDX-License-Identifier: Apache-2.0
"""posthocema.compat in short trainings, against averages in float64, and on files of the libraries that it replaces.

    tests/python/test_compat.py PROGRAM LIBRARY
"""
import copy
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
os.environ["POSTHOC_EMA_LIBRARY"] = os.path.abspath(sys.argv[2])
del sys.argv[1:]
sys.path.insert(0, str(SOURCE / "python"))

import torch  # noqa: E402

import posthocema as ph  # noqa: E402
from posthocema.compat import EMA, KarrasEMA, PostHocEMA  # noqa: E402

try:
    import ema_pytorch
except ImportError:
    ema_pytorch = None

torch.set_num_threads(1)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(6, 6)
        self.norm = torch.nn.BatchNorm1d(6)
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        return self.norm(self.linear(x))


class Compat(unittest.TestCase):
    def setUp(self):
        self.holder = tempfile.TemporaryDirectory()
        self.addCleanup(self.holder.cleanup)
        self.dir = pathlib.Path(self.holder.name)
        torch.manual_seed(1)
        self.model = Model()
        self.live = []

    def move(self, steps, update):
        """A random walk; every step is kept."""
        for _ in range(steps):
            with torch.no_grad():
                self.model.linear.weight += 0.1 * torch.randn(6, 6)
                self.model.count += 1
            self.live.append(self.model.linear.weight.detach().double().clone())
            update()

    def test_parameters_that_are_copied_in_autocast_are_used_there(self):
        ema = EMA(self.model, update_after_step=0, update_every=1)
        self.move(5, ema.update)
        x = torch.ones(1, 6)
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
            self.model.linear(x)  # casts the parameters once, for all uses in this block
            ema.copy_params_from_ema_to_model()
            self.assertTrue(torch.equal(self.model.linear(x), ema.ema_model.linear(x)))

    def test_a_model_whose_state_is_a_copy_keeps_its_parameters(self):
        class Copying(Model):
            """Its state is in 16 bits."""

            def _save_to_state_dict(self, destination, prefix, keep_vars):
                super()._save_to_state_dict(destination, prefix, keep_vars)
                destination["own"] = self.own.detach().half()

        model = Copying()
        model.own = torch.nn.Parameter(torch.randn(5))
        ema = PostHocEMA.from_model(model, self.dir, sigma_rels=(0.1,), update_every=1, checkpoint_every=1)
        ema.update_(model)
        before = model.own.detach().clone()
        with self.assertRaisesRegex(ph.InputsError, r"'own': state_dict\(\) makes a copy"):
            ema.model(model, 0.1).__enter__()
        self.assertTrue(torch.equal(model.own, before))

    def test_a_model_of_an_average_first_used_in_inference_mode_gets_later_ones(self):
        ema = KarrasEMA(self.model, 0.1, update_every=1)
        self.move(2, ema.update)
        with torch.inference_mode():
            ema(torch.randn(3, 6))
        self.move(2, ema.update)
        self.assertTrue(torch.equal(ema.ema_model.linear.weight, ema.recorder.average()["linear.weight"]))

    def truth(self, width, end, every=1):
        """The average in float64 of the steps every, 2 every, ... with the mass that lies between them."""
        g = ph.gamma(width)
        return sum(
            ((t / end) ** (g + 1) - ((t - every) / end) ** (g + 1)) * self.live[t - 1] for t in range(every, end + 1, every)
        )

    def assert_near(self, found, expected, most):
        self.assertLess(float((found.double() - expected).norm() / expected.norm()), most)

    def test_ema_pytorch(self):
        for every in (1, 5):
            self.setUp()
            emas = PostHocEMA(
                self.model, sigma_rels=(0.05, 0.2), checkpoint_every_num_steps=20, checkpoint_folder=self.dir / "a",
                checkpoint_dtype=torch.float32, update_every=every,
            )  # fmt: skip
            self.move(200, emas.update)
            self.assertEqual(emas.step.item(), 200)
            self.assertIs(emas.model, self.model)
            self.assertEqual(emas.device, torch.device("cpu"))
            own = self.model.linear.weight.detach().clone()
            tracked = emas.synthesize_ema_model(sigma_rel=0.2)
            self.assert_near(tracked.ema_model.linear.weight, self.truth(0.2, 200, every), 1e-6)
            between = emas.synthesize_ema_model(gamma=ph.gamma(0.1))
            self.assert_near(between.ema_model.linear.weight, self.truth(0.1, 200, every), 0.02)
            earlier = emas.synthesize_ema_model(sigma_rel=0.05, step=100)
            self.assert_near(earlier.ema_model.linear.weight, self.truth(0.05, 100, every), 1e-6)
            self.assertEqual(int(tracked.ema_model.count), 200)
            self.assertTrue(torch.equal(self.model.linear.weight, own))
            x = torch.randn(3, 6)
            self.model.eval()
            both = emas(x)
            self.assertEqual(len(both), 2)
            self.assertTrue(torch.allclose(tracked.eval()(x), both[1]))
            emas.copy_params_from_ema_to_model()
            self.assert_near(self.model.linear.weight, self.truth(0.2, 200, every), 1e-6)
            with self.assertRaises(ph.UsageError):
                emas.copy_params_from_model_to_ema()

    def test_a_run_resumes(self):
        options = {"sigma_rels": (0.05, 0.2), "checkpoint_every_num_steps": "manual", "checkpoint_folder": self.dir}
        first = PostHocEMA(self.model, update_every=1, **options)
        self.move(50, first.update)
        state = {key: value for key, value in first.state_dict().items()}
        second = PostHocEMA(self.model, update_every=1, **options)
        second.load_state_dict(state)
        self.assertEqual(list(self.dir.iterdir()), [])
        self.move(50, second.update)
        self.assertEqual(len(second.checkpoint()), 2)
        self.assert_near(second.synthesize_ema_model(sigma_rel=0.2).ema_model.linear.weight, self.truth(0.2, 100), 1e-3)

    def test_pytorch_posthoc_ema(self):
        ema = PostHocEMA.from_model(
            self.model, self.dir / "b", sigma_rels=(0.05, 0.2), checkpoint_every=20, max_checkpoints=8, update_every=1
        )
        self.move(200, lambda: ema.update_(self.model))
        self.assertEqual(len(list((self.dir / "b").iterdir())), 2 * 8)
        own = {n: t.clone() for n, t in self.model.state_dict().items()}
        for reader in (ema, PostHocEMA.from_path(self.dir / "b"), PostHocEMA.from_path(self.dir / "b", self.model)):
            with reader.model(self.model, sigma_rel=0.2) as model:
                self.assert_near(model.linear.weight, self.truth(0.2, 200), 1e-6)
                self.assertFalse(model.training)
            self.assertTrue(self.model.training)
            self.assertTrue(all(torch.equal(t, own[n]) for n, t in self.model.state_dict().items()))
            with reader.state_dict(sigma_rel=0.1, step=200) as state:
                self.assertEqual(set(state), set(own))
                self.assert_near(state["linear.weight"], self.truth(0.1, 200), 0.02)
        self.assertEqual(int(ema.step), 200)
        with self.assertRaises(ph.UsageError):
            ema.update_(Model())
        ema.update_(torch.nn.DataParallel(self.model))
        self.assertEqual(int(ema.step), 201)
        with self.assertRaises(ph.UsageError):
            PostHocEMA.from_path(self.dir / "b").update()
        with self.assertRaises(ph.OutputError):  # it is a run of its own
            PostHocEMA.from_model(self.model, self.dir / "b", update_every=1).update()
        with self.assertRaises(ph.InputsError):
            with ema.model(torch.nn.Linear(6, 6), sigma_rel=0.2):
                pass

    def test_the_settings_have_the_names_of_the_other_libraries(self):
        ema = PostHocEMA(self.model, sigma_rels=(0.05, 0.28), update_every=10, checkpoint_folder=self.dir)
        self.assertIs(ema.to("cpu"), ema)
        self.assertEqual((ema.sigma_rels, ema.update_every, ema.num_ema_models), ((0.05, 0.28), 10, 2))

    def test_averages_are_part_of_the_module_that_trains(self):
        class Trainer(torch.nn.Module):
            def __init__(trainer):
                super().__init__()
                trainer.net = self.model
                trainer.emas = PostHocEMA(self.model, sigma_rels=(0.05, 0.2), update_every=1, checkpoint_folder=self.dir)

        first = Trainer()
        self.move(40, first.emas.update)
        self.assertEqual(len(list(first.emas.parameters())), 0)
        torch.save(first.state_dict(), self.dir / "checkpoint.pt")
        second = Trainer()
        second.load_state_dict(torch.load(self.dir / "checkpoint.pt"))
        self.assertEqual(int(second.emas.step), 40)
        for ema, width in zip(second.emas.ema_models, (0.05, 0.2)):
            self.assert_near(ema.ema_model.linear.weight, self.truth(width, 40), 1e-6)
            self.assertEqual(int(ema.ema_model.count), 40)
        self.assertIs(second.emas.ema_models[0].ema_model, second.emas.ema_models[0].ema_model)
        self.move(10, second.emas.update)
        self.assert_near(second.emas.ema_models[1].ema_model.linear.weight, self.truth(0.2, 50), 1e-6)
        second.half()  # averages in 16 bits would stop
        self.assertEqual(second.emas.ema_models[0].ema_model.linear.weight.dtype, torch.float16)
        self.assert_near(second.emas.recorder.average(0.2)["linear.weight"], self.truth(0.2, 50), 1e-6)
        self.assertEqual(second.emas.device, torch.device("cpu"))
        second.emas.to("meta")
        self.assertEqual(second.emas.device, torch.device("meta"))
        old = first.emas.recorder.state_dict()  # what state_dict() of earlier versions was
        third = PostHocEMA(Model(), sigma_rels=(0.05, 0.2), update_every=1, checkpoint_folder=self.dir)
        third.load_state_dict(old)
        self.assertEqual(third.recorder.run_id, first.emas.recorder.run_id)

    def test_names_that_are_left_out_are_those_of_the_model(self):
        emas = PostHocEMA(
            self.model, sigma_rels=(0.05, 0.2), checkpoint_every_num_steps=20, checkpoint_folder=self.dir, update_every=1,
            param_or_buffer_names_no_ema={"linear.bias"}, ignore_startswith_names={"norm.running"},
        )  # fmt: skip
        self.move(60, emas.update)
        with torch.no_grad():
            self.model.linear.bias += 1
        for ema in (emas.synthesize_ema_model(sigma_rel=0.1), emas.ema_models[1]):
            self.assertTrue(torch.equal(ema.ema_model.linear.bias, self.model.linear.bias))
            self.assertFalse(torch.equal(ema.ema_model.linear.weight, self.model.linear.weight))
        with ph.open(self.dir) as series, series.plan(0.1) as plan:
            names = {info.name for info in plan.tensors()}
        left_out = {"linear.bias", "norm.running_mean", "norm.running_var"}
        self.assertEqual(set(self.model.state_dict()) - names, left_out)
        with self.assertRaises(TypeError):
            PostHocEMA(self.model, sigma_rels=(0.05, 0.2), checkpoint_folder=self.dir, ignore_name={"linear.bias"})

    def test_one_average_in_memory(self):
        for every in (1, 5):
            self.setUp()
            ema = KarrasEMA(self.model, sigma_rel=0.15, update_every=every)
            self.move(100, ema.update)
            self.assert_near(ema.ema_model.linear.weight, self.truth(0.15, 100, every), 1e-6)
            self.assertAlmostEqual(ema.beta, (1 - every / 100) ** (ema.gamma + 1))
            x = torch.randn(3, 6)
            self.assertTrue(torch.equal(ema.eval()(x), ema(x)))
            self.assertTrue(self.model.training)
            other = KarrasEMA(Model(), gamma=ph.gamma(0.15), update_every=every)
            other.load_state_dict(ema.state_dict())
            self.assertTrue(torch.equal(other.ema_model.linear.weight, ema.ema_model.linear.weight))
            other.copy_params_from_ema_to_model()
            self.assert_near(other.model.linear.weight, self.truth(0.15, 100, every), 1e-6)
        with self.assertRaisesRegex(ph.UsageError, "without dir"):
            ema.recorder.save()
        with self.assertRaises(ph.UsageError):
            ema.copy_params_from_model_to_ema()

    def test_decays_are_those_of_the_formula(self):
        ema = EMA(self.model, beta=0.95, update_after_step=10, update_every=3, inv_gamma=2.0, power=0.75)
        self.move(90, ema.update)
        expected = self.live[9]
        for call in range(12, 90, 3):  # counted from 0; those to 9 copy
            decay = min(0.95, 1 - (1 + (call + 1 - 10 - 1) / 2.0) ** -0.75)
            expected = decay * expected + (1 - decay) * self.live[call]
        self.assert_near(ema.ema_model.linear.weight, expected, 1e-6)
        self.assertAlmostEqual(ema.get_current_decay(), 1 - (1 + 79 / 2.0) ** -0.75, places=6)

    @unittest.skipUnless(ema_pytorch, "needs ema-pytorch")
    def test_an_ema_has_the_bits_of_ema_pytorch(self):
        for options in (
            {}, {"beta": 0.99, "update_after_step": 0, "update_every": 1}, {"beta": 1.0, "update_every": 1, "update_after_step": 3},
            {"beta": 0.9, "update_after_step": 10, "update_every": 3, "inv_gamma": 2.0, "power": 0.75, "min_value": 0.3},
            {"update_after_step": 0, "update_every": 1, "ignore_names": {"linear.weight"}, "ignore_startswith_names": {"norm."},
             "param_or_buffer_names_no_ema": {"linear.bias"}, "include_online_model": False},
            {"update_after_step": 0, "update_every": 2, "update_model_with_ema_every": 5},
            {"update_after_step": 0, "update_every": 2, "update_model_with_ema_every": 5, "update_model_with_ema_beta": 0.3},
        ):  # fmt: skip
            self.setUp()
            other = copy.deepcopy(self.model)
            ema, theirs = EMA(self.model, **options), ema_pytorch.EMA(other, **options)
            self.assertEqual(list(ema.state_dict()), list(theirs.state_dict()))

            def update():
                with torch.no_grad():
                    other.linear.weight += self.model.linear.weight - other.linear.weight
                x = torch.randn(4, 6)
                self.model(x), other(x)
                ema.update(), theirs.update()

            self.move(130, update)
            for name, tensor in theirs.ema_model.state_dict().items():
                if tensor.is_floating_point():
                    self.assertTrue(torch.equal(ema.ema_model.state_dict()[name], tensor), (options, name))
            again = EMA(Model(), **options)
            again.load_state_dict(theirs.state_dict())
            self.assertTrue(torch.equal(again.ema_model.linear.weight, ema.ema_model.linear.weight))
            self.assertEqual(int(again.step), 130)

    def test_an_ema_is_called_like_the_model(self):
        ema = EMA(self.model, update_every=1, lazy_init_ema=True, forward_method_names=("state_dict",))
        self.move(5, ema.update)
        x = torch.randn(3, 6)
        self.assertFalse(ema.eval().training)
        self.assertTrue(self.model.training)
        self.assertTrue(torch.equal(ema.forward_eval(x), ema.ema_model(x)))
        self.assertFalse(any(p.requires_grad for p in ema.ema_model.parameters()))
        self.assertEqual(set(ema.state_dict()), set(self.model.state_dict()))  # that of ema_model
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        if hasattr(optimizer, "register_step_post_hook"):
            ema.add_to_optimizer_post_step_hook(optimizer)
            optimizer.step()
            self.assertEqual(int(ema.step), 6)
        with self.assertRaisesRegex(TypeError, "ema-pytorch itself"):
            EMA({"weight": torch.zeros(3)})

    def test_wrapped_models_are_averaged(self):
        for kind in (EMA, KarrasEMA):
            options = {"beta": 0.9, "update_after_step": 0} if kind is EMA else {"sigma_rel": 0.1}
            ema, plain = (kind(m, update_every=1, **options) for m in (torch.nn.DataParallel(self.model), self.model))
            self.move(20, lambda: (ema.update(), plain.update()))
            self.assertTrue(torch.equal(ema.ema_model.linear.weight, plain.ema_model.linear.weight))
            self.assertFalse(torch.equal(ema.ema_model.linear.weight, self.model.linear.weight))
            ema.copy_params_from_ema_to_model()
            self.assertTrue(torch.equal(ema.ema_model.linear.weight, self.model.linear.weight))
        with self.assertRaisesRegex(ph.InputsError, "is in one of the models only"):
            EMA(self.model, ema_model=torch.nn.Linear(6, 6))
        emas = PostHocEMA(self.model, sigma_rels=(0.05, 0.2), checkpoint_folder=self.dir, ema_model=lambda: Model())
        with self.assertRaisesRegex(ph.UsageError, "twice"):
            emas.ema_models[0].update()
        self.assertTrue(torch.equal(emas.ema_models[0].ema_model.linear.weight, self.model.linear.weight))

    def test_an_ema_may_record_snapshots(self):
        ema = EMA(self.model, update_every=1, sigma_rels=(0.05, 0.2), checkpoint_folder=self.dir, checkpoint_every_num_steps=20)
        self.move(100, ema.update)
        made = ema.post_hoc.synthesize_ema_model(sigma_rel=0.2)
        self.assert_near(made.ema_model.linear.weight, self.truth(0.2, 100), 1e-3)
        self.assertEqual(EMA(self.model, checkpoint_folder=self.dir).post_hoc.sigma_rels, (0.05, 0.28))
        again = EMA(Model(), update_every=1, sigma_rels=(0.05, 0.2), checkpoint_folder=self.dir)
        again.load_state_dict(ema.state_dict())
        self.assertEqual(again.post_hoc.recorder.run_id, ema.post_hoc.recorder.run_id)
        with self.assertRaises(TypeError):
            EMA(self.model, update_evry=1)

    def test_tensors_have_the_dtypes_of_the_model(self):
        self.model.double()
        ema = PostHocEMA.from_model(self.model, self.dir, checkpoint_every=20, update_every=1)
        self.move(60, lambda: ema.update_(self.model))
        with ema.state_dict(sigma_rel=0.1) as state:
            self.assertEqual({n: t.dtype for n, t in state.items()}, {n: t.dtype for n, t in self.model.state_dict().items()})
        with PostHocEMA.from_path(self.dir).state_dict(sigma_rel=0.1) as state:
            self.assertEqual(state["linear.weight"].dtype, torch.float32)

    def test_frozen_parameters_may_be_left_out(self):
        options = {"sigma_rels": (0.05, 0.2), "checkpoint_every": 20, "update_every": 1, "only_save_diff": True}
        next(self.model.parameters()).requires_grad_(False)
        frozen = next(name for name, p in self.model.named_parameters() if not p.requires_grad)
        ema = PostHocEMA.from_model(self.model, self.dir, **options)
        self.move(60, lambda: ema.update_(self.model))
        with ema.state_dict(sigma_rel=0.1) as state:
            self.assertEqual(set(self.model.state_dict()) - set(state), {frozen})
        with ema.model(self.model, sigma_rel=0.1) as model:
            self.assertTrue(all(torch.equal(t, model.state_dict()[n].float()) for n, t in state.items() if t.is_floating_point()))
        with self.assertRaises(ph.InputsError):
            with PostHocEMA.from_path(self.dir).model(self.model, sigma_rel=0.1):
                pass
        with PostHocEMA.from_path(self.dir, only_save_diff=True).model(self.model, sigma_rel=0.1):
            pass

    def test_a_run_of_from_model_resumes_in_its_directory(self):
        options = {"sigma_rels": (0.05, 0.2), "checkpoint_every": 10, "max_checkpoints": 3, "update_every": 1}
        first = PostHocEMA.from_model(self.model, self.dir, **options)
        self.move(45, first.update)
        state = copy.deepcopy(first.state_dict())
        self.move(10, first.update)  # lost
        del self.live[45:]
        with torch.no_grad():
            self.model.linear.weight.copy_(self.live[-1])
        second = PostHocEMA.from_model(self.model, self.dir, **options)
        second.load_state_dict(state)
        self.move(35, second.update)
        steps = sorted({int(p.name.split("-")[1]) for p in self.dir.iterdir()})
        self.assertEqual(steps, [60, 70, 80])
        self.assert_near(second.synthesize_ema_model(sigma_rel=0.2).ema_model.linear.weight, self.truth(0.2, 80), 1e-6)
        self.assertEqual(second.recorder.run_id, first.recorder.run_id)
        with self.assertRaisesRegex(ph.UsageError, "from_model"):
            PostHocEMA.from_path(self.dir).load_state_dict(state)

    def test_predicted_errors_are_those_that_averages_have(self):
        emas = PostHocEMA(
            self.model, sigma_rels=(0.05, 0.2), checkpoint_every_num_steps=20, checkpoint_folder=self.dir,
            checkpoint_dtype=torch.float32, update_every=1,
        )  # fmt: skip
        self.move(200, emas.update)
        widths, errors = emas.reconstruction_error((0.05, 0.2), 4)
        for width, expected in zip(widths, (0.05, 0.1, 0.15, 0.2)):
            self.assertAlmostEqual(width, expected, delta=1e-9)
        self.assertLess(max(errors[0], errors[3]), 1e-6)
        for width, error in list(zip(widths, errors))[1:3]:
            state = emas.synthesize_ema_model(sigma_rel=width).ema_model.state_dict()
            norm = sum(float(t.double().square().sum()) for t in state.values() if t.is_floating_point()) ** 0.5
            real = float((state["linear.weight"].double() - self.truth(width, 200)).norm()) / norm
            self.assertTrue(real / 3 < error < real * 3, (width, error, real))
        widths, earlier = emas.reconstruction_error(step=100)
        self.assertEqual((len(widths), widths[0], widths[-1]), (100, 0.05, 0.28))
        self.assertLess(earlier[0], 1e-6)
        for wrong in ({"num_target_points": 1}, {"target_sigma_rel_range": (0.2, 0.1)}):
            with self.assertRaises(ph.UsageError):
                emas.reconstruction_error(**wrong)

    def test_files_of_ema_pytorch_are_read(self):
        reader = PostHocEMA.from_path(SOURCE / "fixtures/ema_pytorch/snapshots", sigma_rels=(0.05, 0.28), update_every=5)
        with reader.open() as series:
            self.assertEqual(series.layout, "ema-pytorch")
        with reader.state_dict(sigma_rel=0.2) as state:
            self.assertTrue(all(torch.isfinite(t).all() for t in state.values() if t.is_floating_point()))

    def test_wrong_options_are_refused(self):
        for options in ({}, {"sigma_rels": (0.1,), "gammas": (5,)}):
            with self.assertRaises(ph.UsageError):
                PostHocEMA(self.model, checkpoint_folder=self.dir, **options)
        emas = PostHocEMA(self.model, gammas=(6.94, 16.97), checkpoint_folder=self.dir)
        self.assertAlmostEqual(emas.recorder.widths[0], 0.1, delta=1e-3)
        self.assertEqual(emas.num_ema_models, 2)
        for found, given in zip(emas.gammas, (6.94, 16.97)):
            self.assertAlmostEqual(found, given, delta=1e-9)
        emas.copy_params_from_model_to_ema()
        for options in ({}, {"sigma_rel": 0.1, "gamma": 5}):
            with self.assertRaises(ph.UsageError):
                emas.synthesize_ema_model(**options)

    def test_the_examples_of_the_document_run(self):
        text = (SOURCE / "docs/migration.md").read_text()
        blocks = re.findall(r"^```python\n(.*?)^```$", text, flags=re.S | re.M)
        self.assertEqual(len(blocks), 4)
        for i, block in enumerate(blocks):
            (self.dir / str(i)).mkdir()
            environment = {**os.environ, "PYTHONPATH": str(SOURCE / "python")}
            subprocess.run([sys.executable, "-c", block], cwd=self.dir / str(i), env=environment, check=True)


if __name__ == "__main__":
    unittest.main()
