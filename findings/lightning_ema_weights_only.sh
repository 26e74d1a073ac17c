#!/usr/bin/env bash
# Lightning's EMAWeightAveraging with ModelCheckpoint(save_weights_only=True): the files hold the raw weights.
#
# One would guess that the smaller files hold the average, as 'state_dict' of the whole ones does, and as the validation during
# training sees it. The average is written by a hook of callbacks, which is not called for weights alone. Nothing in such a file
# says which of the two it holds, and their keys are the same.
# Seen with Lightning 2.6.6 and torch 2.15.0 (5 GB with what it needs).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -q lightning==2.6.6 torch==2.15.0 numpy==2.2.6
venv/bin/python - <<'END' 2>/dev/null | tee found
import lightning.pytorch as pl, torch
from lightning.pytorch.callbacks import EMAWeightAveraging, ModelCheckpoint

LAST = 4


class Steps(torch.optim.SGD):
    """The parameter after step k is k."""

    def step(self, closure=None):
        closure()
        with torch.no_grad():
            self.param_groups[0]["params"][0].add_(1)


class Module(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(1, 1, bias=False)
        torch.nn.init.zeros_(self.net.weight)

    def training_step(self, batch, _):
        return self.net(batch).sum()

    def configure_optimizers(self):
        return Steps(self.parameters(), 1)


for weights_only in (False, True):
    checkpoints = ModelCheckpoint(dirpath=f"only-{weights_only}", filename="last", save_weights_only=weights_only)
    trainer = pl.Trainer(max_epochs=1, callbacks=[EMAWeightAveraging(decay=0.5), checkpoints], logger=False,
                         enable_progress_bar=False, enable_model_summary=False, accelerator="cpu")
    trainer.fit(Module(), torch.utils.data.DataLoader([torch.ones(1, 1)] * LAST, batch_size=None))
    file = torch.load(f"only-{weights_only}/last.ckpt", weights_only=False)
    print(f"save_weights_only={weights_only}: state_dict has {file['state_dict']['net.weight'].item():g};",
          "of averages beside it:", [key for key in file if "averag" in key or "current" in key])
END
diff <(grep save_weights_only found) - <<'END'
save_weights_only=False: state_dict has 3.125; of averages beside it: ['current_model_state', 'averaging_state']
save_weights_only=True: state_dict has 4; of averages beside it: []
END
