#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The real classes that average parameters, against the SPEC that stands for each: docs/averages.md.

  tests/averages_classes.py PROGRAM [CASE...]      needs the packages of scripts/trainers; a case without its own is skipped

The parameters after step k are the unit vector k, those before training the unit vector 0. So an average is the list of its
weights. The program makes the same average of the parameters of each step. Weights differ by at most 1e-12, and by 3e-7 where
a class computes in float32.
"""
import functools
import importlib.util
import json
import logging
import os
import re
import subprocess
import sys
import tempfile
import types
import warnings
from pathlib import Path

CONFIG = tempfile.TemporaryDirectory()
os.environ.update(CUDA_VISIBLE_DEVICES="", KERAS_BACKEND="torch", JAX_PLATFORMS="cpu", JAX_ENABLE_X64="1", YOLO_CONFIG_DIR=CONFIG.name)
warnings.simplefilter("ignore")

import numpy as np  # noqa: E402
import torch  # noqa: E402

PROGRAM = os.path.abspath(sys.argv[1])
LAST, ENDS = 260, (9, 130, 260)


class Net(torch.nn.Module):
    def __init__(self, dtype):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(LAST + 1, dtype=dtype))
        self.at(0)

    @torch.no_grad()
    def at(self, step):
        self.weight.zero_()[step] = 1

    def forward(self, x):
        return self.weight.sum() * x.sum()


class Impulses(torch.optim.Optimizer):
    """Sets the parameters to those of the next step."""

    def __init__(self, net):
        super().__init__(net.parameters(), {})
        self.net, self.n = net, 0

    def step(self, closure=None):
        loss = closure() if closure else None
        self.n += 1
        self.net.at(self.n)
        return loss


def row(tensor):
    return np.array(tensor.detach().double().reshape(-1))


def called(make, update, read, dtype=torch.float64):
    """The averages of a class that the training loop calls after each step."""
    net = Net(dtype)
    average, rows = make(net), []
    for step in range(1, LAST + 1):
        net.at(step)
        update(average, net, step)
        rows.append(row(read(average)))
    return rows


def module_of(package, path):
    """A file of an installed package, without the rest of it."""
    found = importlib.util.find_spec(package)
    if not found:
        raise ImportError(f"no module named {package}", name=package)
    spec = importlib.util.spec_from_file_location(path.replace("/", "_"), Path(found.submodule_search_locations[0]) / (path + ".py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ---- Classes ----


def timm(name, with_step, dtype=torch.float64, **options):
    import timm.utils

    def update(average, net, step):
        average.update(net, **({"step": step} if with_step else {}))

    return called(lambda net: getattr(timm.utils, name)(net, **options), update, lambda average: average.module.weight, dtype)


def averaged_model(function, dtype=torch.float64):
    from torch.optim import swa_utils

    key, make = ("multi_avg_fn", swa_utils.get_ema_multi_avg_fn) if function == "multi" else ("avg_fn", swa_utils.get_ema_avg_fn)
    return called(
        lambda net: swa_utils.AveragedModel(net, **({key: make(0.99)} if function else {})),
        lambda average, net, _: average.update_parameters(net), lambda average: average.module.weight, dtype,
    )  # fmt: skip


def ema_pytorch(name, **options):
    import ema_pytorch as library

    return called(
        lambda net: getattr(library, name)(net, **options), lambda average, net, _: average.update(),
        lambda average: (average.ema_models[0] if name == "PostHocEMA" else average).ema_model.weight,
    )  # fmt: skip


def torch_ema(**options):
    from torch_ema import ExponentialMovingAverage

    return called(
        lambda net: ExponentialMovingAverage(net.parameters(), **options),
        lambda average, net, _: average.update(), lambda average: average.shadow_params[0],
    )  # fmt: skip


def diffusers(**options):
    from diffusers.training_utils import EMAModel

    return called(
        lambda net: EMAModel(net.parameters(), **options),
        lambda average, net, _: average.step(net.parameters()), lambda average: average.shadow_params[0],
    )  # fmt: skip


def mmengine(name, begin=0, **options):
    import mmengine.hooks
    import mmengine.model
    import mmengine.registry

    if name == "ExpMomentumEMA" and name not in mmengine.registry.MODELS:
        sys.modules["mmdet.registry"] = mmengine.registry
        module_of("mmdet", "models/layers/ema")
    net, rows = Net(torch.float64), []
    hook = mmengine.hooks.EMAHook(name, begin_iter=begin, **options)
    runner = types.SimpleNamespace(model=net, iter=0, _resume=False, _load_from=None)
    hook.before_run(runner)
    for step in range(1, LAST + 1):
        net.at(step)
        hook.after_train_iter(runner, runner.iter)
        runner.iter += 1
        rows.append(row(hook.ema_model.module.weight))
    return rows


def ultralytics(**options):
    from ultralytics.utils.torch_utils import ModelEMA

    return called(lambda net: ModelEMA(net, **options), lambda average, net, _: average.update(net), lambda average: average.ema.weight)


def fit(callback, read, dtype, epoch=LAST):
    """Of a Trainer of Lightning; epoch: batches in each."""
    import lightning.pytorch as pl

    rows = []

    class Module(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = Net(dtype)

        def training_step(self, batch, _):
            return self.net(batch)

        def configure_optimizers(self):
            return Impulses(self.net)

    class Reader(pl.Callback):
        def on_train_batch_end(self, trainer, module, *_):
            rows.append(row(read(trainer, callback)))

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    trainer = pl.Trainer(
        max_steps=LAST, max_epochs=-1, callbacks=[callback, Reader()], logger=False, enable_progress_bar=False,
        enable_model_summary=False, enable_checkpointing=False, accelerator="cpu",
    )  # fmt: skip
    trainer.fit(Module(), torch.utils.data.DataLoader([torch.ones(1)] * epoch, batch_size=None))
    return rows


def lightning(dtype=torch.float32, **options):
    from lightning.pytorch.callbacks import EMAWeightAveraging

    return fit(EMAWeightAveraging(**options), lambda _, callback: callback._average_model.module.net.weight, dtype)


def nemo(**options):
    callback = module_of("nemo", "collections/common/callbacks/ema").EMA(**options)

    def read(trainer, _):
        trainer.optimizers[0].join()
        return trainer.optimizers[0].ema_params[0]

    return fit(callback, read, torch.float32)


def rf_detr(**options):
    callback = module_of("rfdetr", "training/callbacks/ema").RFDETREMACallback(**options)
    return fit(callback, lambda *_: callback._average_model.module.net.weight, torch.float64)


def ignite(every=1, **options):
    from ignite.engine import Engine, Events
    from ignite.handlers import EMAHandler

    net, rows = Net(torch.float32), []
    handler = EMAHandler(net, **options)
    engine = Engine(lambda engine, _: net.at(engine.state.iteration))
    handler.attach(engine, name="ema_momentum", event=Events.ITERATION_COMPLETED(every=every) if every > 1 else Events.ITERATION_COMPLETED)
    engine.add_event_handler(Events.ITERATION_COMPLETED, lambda _: rows.append(row(handler.ema_model.weight)))
    engine.run([0] * LAST)
    return rows


def keras(accumulation=1, **options):
    import keras as library

    weight = library.Variable(np.eye(1, LAST + 1)[0], dtype="float64")
    steps = library.optimizers.SGD(1.0, use_ema=True, gradient_accumulation_steps=accumulation if accumulation > 1 else None, **options)
    steps.build([weight])
    rows = []
    for step in range(1, LAST + 1):
        for _ in range(accumulation):
            now = weight.value.detach()
            steps.apply([now - torch.eye(LAST + 1, dtype=torch.float64)[step]], [weight])
        assert weight.numpy()[step] == 1
        rows.append(row(steps._model_variables_moving_average[0].value))
    return rows


def optax(**options):
    import jax.numpy
    import optax as library

    average = library.ema(**options)
    state, rows = average.init(jax.numpy.zeros(LAST + 1)), []
    for step in range(1, LAST + 1):
        _, state = average.update(jax.numpy.eye(1, LAST + 1, step)[0], state)
        rows.append(np.array(state.ema, "f8"))
    return rows


# ---- The program ----


def write(path, values, dtype):
    data = values.astype(dtype).tobytes()
    head = json.dumps({"weight": {"dtype": {"f8": "F64", "f4": "F32"}[dtype], "shape": [len(values)], "data_offsets": [0, len(data)]}}).encode()
    path.write_bytes(len(head).to_bytes(8, "little") + head + data)


def read(path):
    data = path.read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    tensor = json.loads(data[8:end])["weight"]
    return np.frombuffer(data[end:], {"F64": "f8", "F32": "f4"}[tensor["dtype"]]).astype("f8")


def made(folder, spec, rows, end, dtype):
    """The average at a step, by the program, of the parameters of all steps until then. Those before training have no snapshot:
    the average after its first update has them, and stands for all steps until then. Where a power function has updates, only
    their steps have snapshots."""
    begin, entries = 0, []
    if rows[end - 1][0] > 0:
        begin = next(step for step in range(1, end + 1) if rows[step - 1][0] < 1)
        (folder / "first").write_text(f"{begin} {float(rows[begin - 1][0])!r}\n")
        write(folder / "first.safetensors", rows[begin - 1], dtype)
        entries.append({"file": "first.safetensors", "time": begin, "profile": {"kind": "table", "file": "first"}})
    for step in range(begin + 1, end + 1):
        if rows[end - 1][step] > 0 or not spec.startswith("power:"):
            path = folder / f"raw-{step}.safetensors"
            write(path, np.eye(1, LAST + 1, step)[0], dtype)
            entries.append({"file": path.name, "time": step, "profile": "raw"})
    (folder / "run.json").write_text(json.dumps({"snapshots": entries}))
    command = [PROGRAM, "synth", "--no-sync", "--force", "--checks", "off", "--ridge", "none", "--profile", spec]
    done = subprocess.run([*command, folder / "run.json", folder / "out.safetensors"], capture_output=True, text=True)
    assert done.returncode == 0, (spec, end, done.stderr)
    expected = re.search(r"error expected ([0-9.e+-]+)", done.stderr)  # if the first average is another
    assert not expected or float(expected.group(1)) < 1e-6, (spec, end, done.stderr)
    return read(folder / "out.safetensors")


def check(spec, measure, most):
    """The largest difference of a weight from the class's, which need not add up to 1."""
    rows = measure()
    assert len(rows) == LAST
    dtype, off = "f8" if most < 1e-9 else "f4", []
    with tempfile.TemporaryDirectory() as work:
        for end in ENDS:
            weights = rows[end - 1]
            if weights[0] < 1:  # the average has begun
                off.append(abs(made(Path(work), spec, rows, end, dtype) - weights / weights.sum()).max())
    return max(off)


def case(measure, spec, *arguments, most=1e-12, **options):
    return spec, functools.partial(measure, *arguments, **options), most


F32 = {"most": 3e-7}  # computes in float32, or betas of it
CASES = {
    "timm-v2": case(timm, "ema:decay=0.99,arithmetic=mul-f32", "ModelEmaV2", False, torch.float32, decay=0.99, **F32),
    "timm-v3-without-step": case(timm, "ema:decay=0.99", "ModelEmaV3", False, decay=0.99, use_warmup=True, update_after_step=50),
    "timm-v3": case(timm, "timm:decay=0.99", "ModelEmaV3", True, decay=0.99),
    "timm-v3-warm-up": case(timm, "timm:decay=0.95,warmup=yes", "ModelEmaV3", True, decay=0.95, use_warmup=True),
    "timm-v3-late": case(
        timm, "timm:decay=0.95,warmup=yes,update-after=40", "ModelEmaV3", True, decay=0.95, use_warmup=True, update_after_step=40
    ),
    "torch-multi": case(averaged_model, "averaged-model:decay=0.99", "multi"),
    "torch-single": case(averaged_model, "averaged-model:decay=0.99,arithmetic=mul-f32", "single", torch.float32, **F32),
    "torch-mean": case(averaged_model, "power:gamma=0", None),
    "ema-pytorch": case(ema_pytorch, "ema-pytorch:beta=0.9999", "EMA", **F32),
    "ema-pytorch-often": case(
        ema_pytorch, "ema-pytorch:beta=0.9,update-every=3,update-after=20,power=0.75,inv-gamma=2,min-value=0.5", "EMA",
        beta=0.9, update_every=3, update_after_step=20, power=0.75, inv_gamma=2, min_value=0.5, **F32
    ),
    "ema-pytorch-karras": case(ema_pytorch, "power:gamma=6.94,update-every=10", "KarrasEMA", gamma=6.94, update_every=10),
    "ema-pytorch-post-hoc": case(ema_pytorch, "power:gamma=3,update-every=7", "PostHocEMA", gammas=(3, 9), update_every=7, checkpoint_every_num_steps="manual"),
    "torch-ema": case(torch_ema, "torch-ema:decay=0.95", decay=0.95),
    "torch-ema-constant": case(torch_ema, "ema:decay=0.99", decay=0.99, use_num_updates=False),
    "diffusers": case(diffusers, "diffusers:decay=0.95", decay=0.95),
    "diffusers-warm-up": case(
        diffusers, "diffusers:decay=0.95,warmup=yes,power=0.75,inv-gamma=2,update-after=10,min-decay=0.3",
        decay=0.95, use_ema_warmup=True, power=0.75, inv_gamma=2, update_after_step=10, min_decay=0.3
    ),
    "mmengine": case(mmengine, "mmengine:momentum=0.01", "ExponentialMovingAverage", momentum=0.01),
    "mmengine-interval": case(mmengine, "mmengine:momentum=0.03,interval=7,begin=25", "ExponentialMovingAverage", 25, momentum=0.03, interval=7),
    "mmengine-annealing": case(mmengine, "mmengine-annealing:momentum=0.01,gamma=20", "MomentumAnnealingEMA", momentum=0.01, gamma=20),
    "mmengine-annealing-interval": case(
        mmengine, "mmengine-annealing:momentum=0.01,gamma=50,interval=4,begin=10", "MomentumAnnealingEMA", 10, momentum=0.01, gamma=50, interval=4
    ),
    "mmdet-exp": case(mmengine, "mmdet-exp:momentum=0.01,gamma=40", "ExpMomentumEMA", momentum=0.01, gamma=40),
    "ultralytics": case(ultralytics, "ultralytics:decay=0.99,tau=50", decay=0.99, tau=50),
    "rf-detr": case(rf_detr, "rf-detr:decay=0.98,tau=30", decay=0.98, tau=30),
    "lightning": case(lightning, "lightning:decay=0.99,arithmetic=mul-f32", decay=0.99, **F32),
    "lightning-every": case(
        lightning, "lightning:decay=0.97,every=4,start=30,arithmetic=mul-f32", decay=0.97, update_every_n_steps=4, update_starting_at_step=30, **F32
    ),
    "ignite": case(ignite, "ignite:momentum=0.01,arithmetic=mul-f32", momentum=0.01, **F32),
    "ignite-warm-up": case(
        ignite, "ignite:momentum=0.01,warmup-momentum=0.2,warmup=20,every=3,arithmetic=mul-f32",
        3, momentum=0.01, momentum_warmup=0.2, warmup_iters=20, **F32
    ),
    "nemo": case(nemo, "nemo:decay=0.97,every=4,arithmetic=mul-f32", decay=0.97, every_n_steps=4, **F32),
    "keras": case(keras, f"keras:decay={np.float32(0.99):.17g}", ema_momentum=0.99),
    "optax": case(optax, "optax:decay=0.99", decay=0.99),
}  # fmt: skip


def main():
    torch.set_num_threads(1)
    failed, skipped = [], []
    for name in sys.argv[2:] or CASES:
        spec, measure, most = CASES[name]
        try:
            off = check(spec, measure, most)
        except ImportError as error:
            skipped.append(f"{name} (no {error.name})")
            continue
        print(f"{name}: {spec}: weights differ by at most {off:.1e}", flush=True)
        if off > most:
            failed.append(name)
    if skipped:
        print("skipped:", *skipped)
    if failed:
        sys.exit(f"other weights: {' '.join(failed)}")


if __name__ == "__main__":
    main()
