#!/usr/bin/env bash
# In checkpoints of MMEngine's EMAHook, state_dict is the average, and ema_state_dict holds the trained parameters.
#
# The hook exchanges the two before each checkpoint, so that state_dict can be deployed. A fine-tuning that loads state_dict
# begins from the average, and a reader that prefers what is called ema gets the model without its average. The hook's
# momentum is 1 - decay.
# Seen with MMEngine 0.10.7 and torch 2.15.0 (5 GB with what it needs).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
# opencv-python, which it asks for, needs libraries of a desktop
venv/bin/pip install -q torch==2.15.0 numpy==2.2.6 opencv-python-headless==4.12.0.88 addict==2.4.0 matplotlib==3.10.7 \
    pyyaml==6.0.3 rich==14.2.0 termcolor==3.2.0 yapf==0.43.0
venv/bin/pip install -q --no-deps mmengine==0.10.7
venv/bin/python - <<'END' 2>/dev/null | tee found
import torch
from mmengine.model import BaseModel
from mmengine.runner import Runner

history = []


class Model(BaseModel):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(3))

    def forward(self, inputs, mode):
        history.append(self.weight.detach().clone())  # before the step
        return {"loss": (self.weight - torch.tensor([1.0, 2.0, 3.0])).square().sum()}


model = Model()
runner = Runner(
    model, "run", train_dataloader=dict(
        batch_size=1, num_workers=0, dataset=[torch.zeros(1)] * 8, sampler=dict(type="DefaultSampler", shuffle=False)
    ),
    optim_wrapper=dict(optimizer=dict(type="SGD", lr=0.1)),
    train_cfg=dict(by_epoch=False, max_iters=8),
    default_hooks=dict(checkpoint=dict(type="CheckpointHook", by_epoch=False, interval=8), logger=dict(type="LoggerHook", interval=99)),
    custom_hooks=[dict(type="EMAHook", momentum=0.1)], log_level="ERROR", experiment_name="run",
)
runner.train()
trained = history[1:] + [model.weight.detach().clone()]  # after each step
average = trained[0].clone()
for weight in trained[1:]:
    average += 0.1 * (weight - average)
saved = torch.load("run/iter_8.pth", weights_only=False)
for key, tensor in (("state_dict", saved["state_dict"]["weight"]), ("ema_state_dict", saved["ema_state_dict"]["module.weight"])):
    names = [name for name, found in (("the trained parameters", trained[-1]), ("their average", average)) if torch.allclose(tensor, found)]
    print("FOUND", key, "holds", *names)
END
diff <(grep -o 'FOUND.*' found) - <<'END'
FOUND state_dict holds their average
FOUND ema_state_dict holds the trained parameters
END
