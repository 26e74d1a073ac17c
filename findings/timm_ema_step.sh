#!/usr/bin/env bash
# timm's ModelEmaV3 warms up and begins late only where each update is told its step.
#
# Without step=, as ModelEmaV2 is called, update() takes the full decay from the first call on, whatever use_warmup, min_decay and
# update_after_step say: the parameters of the initialisation keep their share. The step counts from 1; with 0 or 1 the
# average becomes a copy, also in the middle of a training whose count began anew.
# Seen with timm 1.0.31 and torch 2.15.0 (5 GB with what it needs).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -q timm==1.0.31 torch==2.15.0 torchvision==0.29.2 numpy==2.2.6
venv/bin/python - <<'END' 2>/dev/null | tee found
import torch
from timm.utils import ModelEmaV3


def kept(options, steps):
    """What is left of the first parameters, which are 1 and later 0, after some updates."""
    model = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.ones_(model.weight)
    average = ModelEmaV3(model, decay=0.99, **options)
    torch.nn.init.zeros_(model.weight)
    for step in steps:
        average.update(model, **({} if step is None else {"step": step}))
    return f"{float(average.module.weight.detach()):.3g}"


warm, late = {"use_warmup": True}, {"update_after_step": 100}
print("warm-up, 10 updates: without step=", kept(warm, [None] * 10), "with", kept(warm, range(1, 11)))
print("update_after_step=100, 10 updates: without step=", kept(late, [None] * 10), "with", kept(late, range(1, 11)))
print("10 updates from step 500 on:", kept({}, range(500, 510)), "and one more of step 1:", kept({}, [*range(500, 510), 1]))
END
diff found - <<'END'
warm-up, 10 updates: without step= 0.904 with 0
update_after_step=100, 10 updates: without step= 0.904 with 0
10 updates from step 500 on: 0.904 and one more of step 1: 0
END
