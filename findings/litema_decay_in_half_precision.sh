#!/usr/bin/env bash
# LitEma that is loaded from a checkpoint in half precision keeps its average nearly as it is: its decay has become 1.
#
# LitEma of latent diffusion stores its decay as a buffer, so that state dicts have it, and load_state_dict takes it back,
# whatever the constructor was given. Checkpoints are shared in float16 to save space. There 0.9999 rounds to 1, as it does in
# bfloat16, and the loaded buffer is exactly 1. What is left of the rule is the warm-up, (1 + n) / (10 + n), which reaches
# 0.9999 after 90,000 updates and rises on: after a million, parameters that are 1 move an average of 0 to 0.16 within
# 20,000 updates, where they should move it to 0.86. Nothing is said.
# Seen with stable_diffusion_sdkit 2.1.5, which holds ldm, and torch 2.15.0 (5 GB with what it needs).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -q torch==2.15.0 numpy==2.2.6
venv/bin/pip install -q --no-deps stable_diffusion_sdkit==2.1.5
venv/bin/python - <<'END' 2>/dev/null | tee found
import torch
from ldm.modules.ema import LitEma

model = torch.nn.Linear(1, 1, bias=False)
torch.nn.init.zeros_(model.weight)
stored = LitEma(model, decay=0.9999).state_dict()
stored["num_updates"] = torch.tensor(1_000_000, dtype=torch.int32)
torch.nn.init.ones_(model.weight)
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    average = LitEma(model, decay=0.9999)
    average.load_state_dict({name: value.to(dtype) if value.is_floating_point() else value for name, value in stored.items()})
    for _ in range(20_000):
        average(model)
    print(f"{dtype}: decay {average.decay.item():.6f}, average {average.weight.item():.2f}")
END
diff found - <<'END'
torch.float32: decay 0.999900, average 0.86
torch.float16: decay 1.000000, average 0.16
torch.bfloat16: decay 1.000000, average 0.16
END
