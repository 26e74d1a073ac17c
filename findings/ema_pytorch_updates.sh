#!/usr/bin/env bash
# ema-pytorch's EMA copies at its calls 1, 11, ..., 101 by default, averages from call 111 on, and never sees an integer buffer.
#
# update_every is 10 and update_after_step 100, and the call before the first counts as 0. The warm-up counts calls since then, not
# updates: the decay of the first average, at call 111, is 1 - 11^(-2/3), not 0. num_batches_tracked of batch norm stays what it
# was when EMA was made, where AveragedModel of torch and ModelEmaV3 of timm copy it.
# Seen with ema-pytorch 0.8.3 and torch 2.15.0 (5 GB with what it needs).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -q ema-pytorch==0.8.3 torch==2.15.0 numpy==2.2.6
venv/bin/python - <<'END' 2>/dev/null | tee found
import torch
from ema_pytorch import EMA

model = torch.nn.Sequential(torch.nn.Linear(1, 1, bias=False), torch.nn.BatchNorm1d(1))
average = EMA(model)
copied, averaged, last = [], [], None
for call in range(1, 132):
    with torch.no_grad():
        model[0].weight.fill_(call)
    model(torch.randn(4, 1))
    average.update()
    value = average.ema_model[0].weight.item()
    if value == call:
        copied.append(call)
    elif value != last:
        averaged.append(call)
        if len(averaged) == 1:
            print(f"decay at call {call}: {(call - value) / (call - last):.4f}; 1 - 11^(-2/3) is {1 - 11 ** (-2 / 3):.4f}")
    last = value
print("copied at", *copied)
print("averaged at", *averaged)
print("num_batches_tracked:", model[1].num_batches_tracked.item(), "in the model,", average.ema_model[1].num_batches_tracked.item(), "in the average")
END
diff found - <<'END'
decay at call 111: 0.7978; 1 - 11^(-2/3) is 0.7978
copied at 1 11 21 31 41 51 61 71 81 91 101
averaged at 111 121 131
num_batches_tracked: 131 in the model, 0 in the average
END
