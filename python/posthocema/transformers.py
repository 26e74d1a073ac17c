# SPDX-License-Identifier: Apache-2.0
"""The recorder as a callback of the Trainer of Hugging Face's transformers."""

from __future__ import annotations

import os
from typing import Any, Callable, Optional

import torch
from transformers import TrainerCallback

from ._files import write_files
from .averages import Numbers, log
from .errors import InputsError
from .torch import Recorder, prepare

__all__ = ["TransformersRecorder"]

_STATE = "posthocema.pt"  # in the directory of a checkpoint


class TransformersRecorder(TrainerCallback):
    """Records snapshots while transformers trains.

        trainer = Trainer(..., callbacks=[TransformersRecorder(design="run.design.json")])

    dir: of the snapshots, default "snapshots" in output_dir. resume_from: the checkpoint that training continues
    from, where it is not in output_dir. The other options are those of Recorder; ``recorder`` is the Recorder once
    training has begun. Its state is in the file posthocema.pt of each checkpoint, so that a resumed run continues
    exactly. The end of a training is saved; a training that an exception ends has the snapshots before it.
    """

    def __init__(
        self,
        widths: Optional[Numbers] = None,
        *,
        dir: "Optional[str | os.PathLike[str]]" = None,
        resume_from: "Optional[str | os.PathLike[str]]" = None,
        **options: Any,
    ) -> None:
        super().__init__()
        self.recorder: Optional[Recorder] = None
        self._make, self._dir, self._resume_from = prepare(widths, **options), dir, resume_from
        self._detach: Optional[Callable[[], None]] = None

    def on_train_begin(
        self, args: Any, state: Any, control: Any, model: Any = None, optimizer: Any = None, **_: Any
    ) -> None:
        directory = self._dir or os.path.join(args.output_dir, "snapshots")
        self._end_attachment()
        self.recorder = self._make(model, dir=directory)
        if self.recorder.is_sharded:
            raise InputsError("parameters are sharded; use posthocema.torch.Recorder with distributed checkpoints")
        if state.global_step:
            self._load(self.recorder, args, state)
        while hasattr(optimizer, "optimizer"):  # inside of that of accelerate
            optimizer = optimizer.optimizer
        self._detach = self.recorder.attach(optimizer)

    def _load(self, recorder: Recorder, args: Any, state: Any) -> None:
        given = args.resume_from_checkpoint if isinstance(args.resume_from_checkpoint, str) else None
        checkpoint = self._resume_from or given or self._checkpoint(args, state)
        path = os.path.join(checkpoint, _STATE)
        if not os.path.exists(path):
            raise InputsError(
                f"the training continues at step {state.global_step}, but {path} is missing; give resume_from"
            )
        recorder.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))

    @staticmethod
    def _checkpoint(args: Any, state: Any) -> str:
        return os.path.join(args.output_dir, f"checkpoint-{state.global_step}")

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self.recorder is None or not self.recorder.is_writer:
            return
        path = os.path.join(self._checkpoint(args, state), _STATE)
        held = self.recorder.state_dict()
        write_files({path: lambda file: torch.save(held, file)}, replaces=os.path.lexists)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if control.should_training_stop:
            self._save_end()

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if control.should_training_stop:
            self._save_end()

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if not args.load_best_model_at_end:
            self._save_end()
        elif self.recorder is not None and not self.recorder.is_saved:
            log.warning("step %d: the end is not saved: the model is the best one now", self.recorder.n_steps)
        self._end_attachment()

    def _save_end(self) -> None:
        if self.recorder is not None and self.recorder.n_steps:
            self.recorder.save()

    def _end_attachment(self) -> None:
        detach, self._detach = self._detach, None
        if detach:
            detach()
