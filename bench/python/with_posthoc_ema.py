# SPDX-License-Identifier: Apache-2.0
"""pytorch-posthoc-ema: with_posthoc_ema.py SNAPSHOTS SHAPES SIGMA,... OUT...

Without a model, which it does not need for a state dict.
"""
import sys

from posthoc_ema import PostHocEMA

from model import save

folder, _, sigmas, *outs = sys.argv[1:]
ema = PostHocEMA.from_path(folder, sigma_rels=(0.05, 0.28))
for sigma, out in zip(sigmas.split(","), outs):
    with ema.state_dict(sigma_rel=float(sigma)) as state:
        save(state, out)
