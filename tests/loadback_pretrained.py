#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints that transformers' Trainer and diffusers wrote, averaged, and loaded again by from_pretrained.

  tests/loadback_pretrained.py PROGRAM      needs transformers, accelerate and diffusers: scripts/trainers

What is loaded must be the weighted sum of what from_pretrained loads from the snapshots, in float64 with the weights
that the program prints, rounded once to the dtype that the folder's config.json names.
"""
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

os.environ.update(HF_HUB_OFFLINE="1", CUDA_VISIBLE_DEVICES="", TOKENIZERS_PARALLELISM="false")

import diffusers  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from diffusers import UNet2DModel  # noqa: E402
from diffusers.training_utils import EMAModel  # noqa: E402

PROGRAM = os.path.abspath(sys.argv[1])
EVERY, N_TIMES = 10, 8


def phema(*arguments):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout


def weights_of(*arguments):
    """File to weight, of the first target."""
    said = json.loads(phema("weights", "-q", "--json", *arguments))
    files = [snapshot["file"] for snapshot in said["snapshots"]]
    return {file: weight for file, weight in zip(files, said["targets"][0]["weights"]) if weight}


def state_of(model):
    return {name: tensor.detach() for name, tensor in model.state_dict().items()}


def agree(made, snapshots, weights, dtype):
    """snapshots: file to state; all loaded by from_pretrained."""
    states = {file: snapshots(file) for file in weights}
    newest = list(states.values())[-1]
    assert made.keys() == newest.keys()
    for name, tensor in made.items():
        if not newest[name].is_floating_point():
            assert torch.equal(tensor, newest[name]), name
            continue
        assert tensor.dtype == dtype, (name, tensor.dtype)
        wanted = sum(weight * states[file][name].double() for file, weight in weights.items())
        scale = sum(abs(weight) * states[file][name].double().abs() for file, weight in weights.items())
        off = (tensor.double() - wanted).abs()
        bound = torch.finfo(dtype).eps * 0.5 * wanted.abs() + (len(weights) + 1) * 2.0**-24 * scale
        assert torch.all(off <= bound * 1.0001 + torch.finfo(dtype).tiny), (name, (off - bound).max())
    return len(made)


# ---- transformers ----


def train_language_model(folder, dtype, is_tied):
    """Trainer's own folders: checkpoint-N with model.safetensors, config.json and what resumes it."""
    torch.manual_seed(1)
    config = transformers.LlamaConfig(
        vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=32, tie_word_embeddings=is_tied,
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config).to(dtype)
    tokens = torch.randint(0, 96, (256, 16))
    data = [{"input_ids": row, "labels": row} for row in tokens]
    arguments = transformers.TrainingArguments(
        output_dir=str(folder), max_steps=EVERY * N_TIMES, save_steps=EVERY, per_device_train_batch_size=8,
        learning_rate=3e-3, lr_scheduler_type="constant", report_to=[], disable_tqdm=True, logging_strategy="no",
        use_cpu=True, dataloader_pin_memory=False,
    )  # fmt: skip
    with contextlib.redirect_stdout(io.StringIO()):
        transformers.Trainer(model, arguments, train_dataset=data).train()
    return folder


def shard(run, folder):
    """The same snapshots in several files each."""
    for checkpoint in run.glob("checkpoint-*"):
        load_language_model(checkpoint).save_pretrained(folder / checkpoint.name, max_shard_size="20KB")
    return folder


def load_language_model(folder, **options):
    model, info = transformers.AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True, **options)
    assert not info["missing_keys"] and not info["unexpected_keys"], info
    return model


def check_transformers(work):
    target = ["--input-profile", "raw", "--profile", "wsm-cosine:4"]
    single = train_language_model(work / "float32", torch.float32, is_tied=False)
    half = train_language_model(work / "bfloat16", torch.bfloat16, is_tied=True)
    runs = ((single, torch.float32), (half, torch.bfloat16), (shard(half, work / "sharded"), torch.bfloat16))
    for run, dtype in runs:
        weights = weights_of(*target, run)
        load = lambda file: state_of(load_language_model(run / Path(file).parts[0]))  # noqa: E731, B023
        for options, wanted in (((), dtype), (("--dtype", "f32"), torch.float32), (("--shard-size", "20K"), dtype)):
            merged = work / "-".join(["merged", run.name, *options])
            phema("synth", "-q", *target, *options, run, f"{merged}/")
            model = load_language_model(merged)
            assert json.loads((merged / "config.json").read_text())["dtype"] == str(wanted).split(".")[1]
            n = agree(state_of(model), load, weights, wanted)
            tied = model.get_input_embeddings().weight is model.get_output_embeddings().weight
            assert tied == (dtype == torch.bfloat16)
            model.generate(torch.tensor([[1, 2, 3]]), max_new_tokens=3, do_sample=False, pad_token_id=0)
            print(" ".join(["transformers:", run.name, *options, f"{n} tensors as summed"]))


# ---- diffusers ----


def train_unet(folder, **rule):
    """As the example scripts save: checkpoint-N/unet and checkpoint-N/unet_ema."""
    torch.manual_seed(2)
    unet = UNet2DModel(
        sample_size=8, in_channels=1, out_channels=1, layers_per_block=1, block_out_channels=(8, 16),
        down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        norm_num_groups=4, attention_head_dim=4,
    )  # fmt: skip
    average = EMAModel(unet.parameters(), model_cls=UNet2DModel, model_config=unet.config, **rule)
    optimizer = torch.optim.AdamW(unet.parameters(), lr=1e-3)
    for step in range(1, EVERY * N_TIMES + 1):
        clean, noise = torch.randn(8, 1, 8, 8).sign(), torch.randn(8, 1, 8, 8)
        loss = (unet(clean + noise, torch.full((8,), 10)).sample - noise).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.step(unet.parameters())
        if step % EVERY == 0:
            average.save_pretrained(folder / f"checkpoint-{step}" / "unet_ema")
            unet.save_pretrained(folder / f"checkpoint-{step}" / "unet")
    return folder


def load_unet(folder):
    model, info = UNet2DModel.from_pretrained(folder, output_loading_info=True)
    assert not any(info[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys")), info
    return model


def check_diffusers(work):
    for name, rule in (("capped", {"decay": 0.95}), ("warm-up", {"decay": 0.99, "use_ema_warmup": True, "power": 0.75})):
        run = train_unet(work / f"run-{name}", **rule)
        target = ["--sigma-rel", "0.15"]
        weights = weights_of(*target, run)
        out = work / f"unet-{name}"
        phema("synth", "-q", *target, run, f"{out}/")
        load = lambda file: state_of(load_unet(run / file.split(":")[0]))  # noqa: E731, B023
        n = agree(state_of(load_unet(out)), load, weights, torch.float32)
        again = EMAModel.from_pretrained(out, UNet2DModel)
        for made, kept in zip(load_unet(out).parameters(), again.shadow_params):
            assert torch.equal(made, kept)
        print(f"diffusers: {name} {n} tensors as summed")


def main():
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    diffusers.logging.set_verbosity_error()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as work:
        check_transformers(Path(work))
        check_diffusers(Path(work))


if __name__ == "__main__":
    main()
