#!/usr/bin/env bash
# The averages of pytorch-posthoc-ema begin at call 100 by default, and their decay is that of one step later.
#
# update_after_step is 100 by default: calls 1 to 99 of update_ do nothing. So the STEP in the names of its checkpoints is 99
# ahead of the steps that their averages saw, and its own synthesis takes the STEP for the time. In a training of 400 steps a
# fifth of the weight is in wrong places. The decay of an average's n-th update is (1 - 1/(n+1))^(gamma+1), where the paper has
# (1 - 1/n)^(gamma+1): the average is that of a clock one step ahead. checkpoint_dtype also casts the count of steps.
# Seen with pytorch-posthoc-ema 1.0.10 and torch 2.15.0 (5 GB with what it needs).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -q pytorch-posthoc-ema==1.0.10 torch==2.15.0 numpy==2.2.6
venv/bin/python - <<'END' 2>/dev/null | tee found
import torch
from posthoc_ema import PostHocEMA
from posthoc_ema.utils import sigma_rel_to_gamma

LAST = 400
at = torch.arange(1, LAST + 1, dtype=torch.float64)
runs = iter(range(9))


def train(every, sigma_rels, **options):
    """Averages hold what they took of the parameters of each call: those of call t are the unit vector t."""
    model = torch.nn.Linear(LAST, 1, bias=False)
    averages = PostHocEMA.from_model(model, f"run{next(runs)}", sigma_rels=sigma_rels, update_every=1, checkpoint_every=every, **options)
    for call in range(LAST):
        with torch.no_grad():
            model.weight.zero_()[0, call] = 1
        averages.update_(model)
    return averages


def saved(averages):
    return torch.load(averages.checkpoint_dir / f"0.{LAST}.pt")


def off(weights, sigma_rel, ahead=0):
    """Of the shares of all parameters until each call, those of the paper's average, at most."""
    profile = ((at + ahead) / (LAST + ahead)) ** (sigma_rel_to_gamma(sigma_rel) + 1)
    return (weights[0].double().cumsum(0) - profile).abs().max()


found = saved(train(LAST, (0.28,)))
first = int(found["weight"][0].nonzero()[0]) + 1
print(f"0.{LAST}.pt: its first parameters are those of call {first}, and it counts {int(found['step'])} steps")

found = saved(train(LAST, (0.28,), update_after_step=1))
for name, ahead in (("t", 0), ("t + 1", 1)):
    print(f"updated from call 1 on, on the clock {name}: off by up to {off(found['weight'], 0.28, ahead):.0e}")

for options in ({}, {"update_after_step": 1}):
    with train(20, (0.05, 0.28), max_checkpoints=99, **options).state_dict(0.15, calculation_dtype=torch.float64) as made:
        print(f"synthesis of 0.15 with {options or 'the defaults'}: off by up to {off(made['weight'], 0.15):.1g}")

print("steps as saved in bfloat16:", float(saved(train(LAST, (0.28,), checkpoint_dtype=torch.bfloat16))["step"]))
END
diff found - <<'END'
0.400.pt: its first parameters are those of call 100, and it counts 301 steps
updated from call 1 on, on the clock t: off by up to 2e-03
updated from call 1 on, on the clock t + 1: off by up to 1e-08
synthesis of 0.15 with the defaults: off by up to 0.2
synthesis of 0.15 with {'update_after_step': 1}: off by up to 0.002
steps as saved in bfloat16: 300.0
END
