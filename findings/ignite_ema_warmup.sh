#!/usr/bin/env bash
# The warm-up of Ignite's EMAHandler has no effect if it is attached under another name than "ema_momentum".
#
# attach(engine, name=...) lets a trainer have several averages, and its example has "gen_ema_momentum" for one of them. The
# schedule of the warm-up sets engine.state.ema_momentum whatever the name is. The average reads its own name, which keeps the
# momentum of after the warm-up. There is no warning.
# Seen with pytorch-ignite 0.5.5 and torch 2.15.0 (5 GB with what it needs).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -q pytorch-ignite==0.5.5 torch==2.15.0 numpy==2.2.6
venv/bin/python - <<'END' 2>/dev/null | tee found
import torch
from ignite.engine import Engine
from ignite.handlers import EMAHandler

for name in ("ema_momentum", "gen_ema_momentum"):
    model = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.ones_(model.weight)
    handler = EMAHandler(model, momentum=0.01, momentum_warmup=0.5, warmup_iters=10)
    torch.nn.init.zeros_(model.weight)
    engine = Engine(lambda engine, batch: None)
    handler.attach(engine, name=name)
    engine.run([0] * 10)
    print(f"{name}: of the parameters before training {handler.ema_model.weight.item():.3f} is left after 10 updates")
END
diff found - <<'END'
ema_momentum: of the parameters before training 0.042 is left after 10 updates
gen_ema_momentum: of the parameters before training 0.904 is left after 10 updates
END
