# SPDX-License-Identifier: Apache-2.0
"""ema-pytorch: with_ema_pytorch.py SNAPSHOTS SHAPES SIGMA,... OUT...

As its README has it: the model, its PostHocEMA, one synthesized model after another.
"""
import sys

from ema_pytorch import PostHocEMA

from model import module_of, save

folder, shapes, sigmas, *outs = sys.argv[1:]
ema = PostHocEMA(module_of(shapes), sigma_rels=(0.05, 0.28), checkpoint_folder=folder)
for sigma, out in zip(sigmas.split(","), outs):
    synthesized = ema.synthesize_ema_model(sigma_rel=float(sigma))
    save(synthesized.ema_model.state_dict(), out)
