# SPDX-License-Identifier: Apache-2.0
"""The recorder as a callback of Lightning's Trainer (lightning or pytorch_lightning)."""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, Optional

try:
    from lightning.pytorch import Callback
except ImportError:
    from pytorch_lightning import Callback

from .averages import Numbers
from .errors import InputsError
from .torch import Recorder, prepare

__all__ = ["LightningRecorder"]


class LightningRecorder(Callback):
    """Records snapshots while Lightning trains.

        trainer = Trainer(callbacks=[LightningRecorder(design="run.design.json")])

    dir: of the snapshots, default "snapshots" in trainer.default_root_dir. optimizer: index of the one whose steps
    count. The other options are those of Recorder; ``recorder`` is the Recorder once training has begun. Its state is
    in Lightning's checkpoints, so that a resumed run continues exactly. The end of a training is saved; a training that an
    exception ends has the snapshots before it.
    """

    def __init__(
        self,
        widths: Optional[Numbers] = None,
        *,
        dir: "Optional[str | os.PathLike[str]]" = None,
        optimizer: int = 0,
        **options: Any,
    ) -> None:
        super().__init__()
        self.recorder: Optional[Recorder] = None
        self._make, self._dir, self._optimizer = prepare(widths, **options), dir, optimizer
        self._loaded: Dict[str, Any] = {}
        self._followed: Any = None  # the LightningModule of the recorder
        self._detach: Optional[Callable[[], None]] = None

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        if self.recorder is None or self._followed is not pl_module:
            directory = self._dir or os.path.join(trainer.default_root_dir, "snapshots")
            self.recorder, self._followed = self._make(pl_module, dir=directory), pl_module
            if not self._loaded and trainer.global_step:
                raise InputsError(
                    f"the training continues at step {trainer.global_step}, but its checkpoint has no averages"
                )
        if self._loaded:
            self.recorder.load_state_dict(self._loaded)
            self._loaded = {}
        self._end_attachment()
        self._detach = self.recorder.attach(trainer.optimizers[self._optimizer])

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        if self.recorder is not None and self.recorder.n_steps:
            self.recorder.save()

    def teardown(self, trainer: Any, pl_module: Any, stage: Optional[str] = None) -> None:
        self._end_attachment()

    def _end_attachment(self) -> None:
        detach, self._detach = self._detach, None
        if detach:
            detach()

    def state_dict(self) -> Dict[str, Any]:
        return self.recorder.state_dict() if self.recorder else self._loaded

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        self._loaded = state_dict  # the model is not there yet
