# SPDX-License-Identifier: Apache-2.0
"""The recorder as a callback of Lightning's Trainer (lightning or pytorch_lightning)."""

from __future__ import annotations

import os
from typing import Any, Dict, Optional, SupportsFloat

try:
    from lightning.pytorch import Callback
except ImportError:
    from pytorch_lightning import Callback

from .averages import Numbers, log
from .errors import InputsError
from .torch import Following

__all__ = ["LightningRecorder"]

_OWN = "current_model_state"  # key of a checkpoint, as of Lightning's WeightAveraging


class LightningRecorder(Following, Callback):
    """Records snapshots while Lightning trains.

        trainer = Trainer(callbacks=[LightningRecorder(design="run.design.json")])

    dir: of the snapshots, default "snapshots" in trainer.default_root_dir, "snapshots-MODULE" with module. optimizer: index
    of the one whose steps count. module: the name of the submodule that is recorded. state_key: of this callback in
    checkpoints, default by module; several callbacks in one trainer need different ones. evaluate: one of the widths;
    validation has its average, so that metrics and ModelCheckpoint are those of the average. Checkpoints then have the
    average in "state_dict", as with Lightning's WeightAveraging, and a training that continues has its own parameters.
    The other options are those of Recorder; ``recorder`` is the Recorder once training has begun. Its state is in Lightning's
    checkpoints, so that a resumed run continues exactly. The end of a training is saved; a training that an exception
    ends has the snapshots before it.
    """

    def __init__(
        self, widths: Optional[Numbers] = None, *, dir: "Optional[str | os.PathLike[str]]" = None, optimizer: int = 0,
        module: Optional[str] = None, state_key: Optional[str] = None, evaluate: Optional[SupportsFloat] = None, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        self._prepare(widths, evaluate, module=module, **options)
        self._dir, self._optimizer, self._module, self._state_key = dir, optimizer, module, state_key
        self._loaded: Dict[str, Any] = {}
        self._followed: Any = None  # the LightningModule of the recorder

    @property
    def state_key(self) -> str:
        default: str = self._generate_state_key(module=self._module) if self._module else super().state_key
        return self._state_key or default

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        if self.recorder is None or self._followed is not pl_module:
            directory = self._dir or os.path.join(trainer.default_root_dir, f"snapshots-{self._module}" if self._module else "snapshots")
            self.recorder, self._followed = self._make(pl_module, dir=directory), pl_module
            if not self._loaded and trainer.global_step:
                raise InputsError(f"the training continues at step {trainer.global_step}, but its checkpoint has no averages")
        if self._loaded:
            self.recorder.load_state_dict(self._loaded)
            self._loaded = {}
        if self._evaluate is not None and any(getattr(c, "save_weights_only", False) for c in trainer.checkpoint_callbacks):
            log.warning("checkpoints of save_weights_only=True have the training's parameters, not the average that is evaluated")
        self._end_attachment()
        self._detach = self.recorder.attach(trainer.optimizers[self._optimizer])

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self._save_end()

    def teardown(self, trainer: Any, pl_module: Any, stage: Optional[str] = None) -> None:
        self._end_attachment()

    # ---- Evaluation ----

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        if self._followed is pl_module:
            self._lend(trainer.world_size > 1)

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        self._give_back()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._give_back()

    # ---- Checkpoints ----

    def state_dict(self) -> Dict[str, Any]:
        return self.recorder.state_dict() if self.recorder else self._loaded

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        self._loaded = state_dict  # the model is not there yet

    def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: Dict[str, Any]) -> None:
        recorder = self.recorder
        if self._evaluate is None or not recorder or not recorder.n_steps or not recorder.is_writer or recorder.is_sharded:
            return
        if self._lent:  # a checkpoint of a validation
            self._give_back()
            checkpoint["state_dict"] = {name: t.clone() for name, t in pl_module.state_dict().items()}
            self._lend(False)
        own = checkpoint.setdefault(_OWN, checkpoint["state_dict"])  # once, of several callbacks
        state = dict(checkpoint["state_dict"])
        names = {name.replace("_orig_mod.", ""): name for name in own}
        for name, average in recorder.average(self._evaluate).items():
            name = names[f"{self._module}.{name}" if self._module else name]
            state[name] = average.to(own[name])
        checkpoint["state_dict"] = state

    def on_load_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: Dict[str, Any]) -> None:
        if _OWN in checkpoint and trainer.state.fn == "fit":
            pl_module.load_state_dict(checkpoint[_OWN])
