#!/usr/bin/env bash
# Lightning's EMAWeightAveraging(update_starting_at_epoch=N) averages at every step all the same,
# and twice at the last step of each epoch from N on.
#
# One would guess that it begins at epoch N. The option adds an update after each epoch from N on; those of the steps are as
# without it, until update_starting_at_step or update_every_n_steps limits them. The parameters of an epoch's last step are
# averaged twice, and n_averaged counts both.
# Seen with Lightning 2.6.6 and torch 2.15.0 (5 GB with what it needs).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -q lightning==2.6.6 torch==2.15.0 numpy==2.2.6
venv/bin/python - <<'END' 2>/dev/null | tee found
import lightning.pytorch as pl, torch
from lightning.pytorch.callbacks import EMAWeightAveraging

LAST, EPOCH = 12, 4


class Steps(torch.optim.SGD):
    """The parameters after step k are the unit vector k: an average is the list of its weights."""

    def step(self, closure=None):
        closure()
        self.n = getattr(self, "n", 0) + 1
        with torch.no_grad():
            self.param_groups[0]["params"][0].zero_()[0, self.n] = 1


class Module(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(LAST + 1, 1, bias=False)

    def training_step(self, batch, _):
        return self.net(batch).sum()

    def configure_optimizers(self):
        return Steps(self.parameters(), 1)


def weights(**options):
    class Callback(EMAWeightAveraging):
        def on_train_end(self, *arguments):
            print(f"{options}: {int(self._average_model.n_averaged)} updates in {LAST} steps;", "weights of steps 1 to 12:",
                  *(f"{weight:.3g}" for weight in self._average_model.module.net.weight[0, 1:].tolist()))
            super().on_train_end(*arguments)

    trainer = pl.Trainer(max_epochs=LAST // EPOCH, callbacks=[Callback(decay=0.5, **options)], logger=False, enable_progress_bar=False,
                         enable_model_summary=False, enable_checkpointing=False, accelerator="cpu")
    trainer.fit(Module(), torch.utils.data.DataLoader([torch.ones(1, LAST + 1)] * EPOCH, batch_size=None))


weights()
weights(update_starting_at_epoch=2)
END
diff <(grep updates found) - <<'END'
{}: 12 updates in 12 steps; weights of steps 1 to 12: 0.000488 0.000488 0.000977 0.00195 0.00391 0.00781 0.0156 0.0312 0.0625 0.125 0.25 0.5
{'update_starting_at_epoch': 2}: 13 updates in 12 steps; weights of steps 1 to 12: 0.000244 0.000244 0.000488 0.000977 0.00195 0.00391 0.00781 0.0156 0.0312 0.0625 0.125 0.75
END
