# SPDX-License-Identifier: Apache-2.0
"""The recorder as a callback of the Trainer of Hugging Face's transformers."""

from __future__ import annotations

import os
import sys
from typing import Any, Optional, SupportsFloat

import torch
from transformers import TrainerCallback

from ._files import write_files
from .averages import Numbers, log
from .errors import InputsError
from .torch import Following, Recorder, _find_width, inner_optimizer, unwrap

__all__ = ["TransformersRecorder"]

_STATE = "posthocema.pt"  # in the directory of a checkpoint


def _find_checkpoint() -> Optional[str]:
    """What train(resume_from_checkpoint=...), which called, continues from. No callback gets it, and no attribute has it."""
    frame: Any = sys._getframe()
    while frame is not None:
        found = frame.f_locals.get("resume_from_checkpoint")
        if isinstance(found, (str, os.PathLike)):
            return os.fspath(found)
        frame = frame.f_back
    return None


class TransformersRecorder(Following, TrainerCallback):
    """Records snapshots while transformers trains.

        trainer = Trainer(..., callbacks=[TransformersRecorder(design="run.design.json")])

    dir: of the snapshots, default "snapshots" in output_dir. resume_from: the checkpoint whose averages continue, default
    that of train(resume_from_checkpoint=...). evaluate: one of the widths; evaluations have its average, so that metrics,
    and the best checkpoint by them, are those of the average. Checkpoints then have a model with it in the folder "average",
    and with load_best_model_at_end the model gets the average of the best checkpoint. The other options are those of
    Recorder; ``recorder`` is the Recorder once training has begun. Its state is in the file posthocema.pt of each
    checkpoint, so that a resumed run continues exactly. The end of a training is saved; a training that an exception
    ends has the snapshots before it.
    """

    def __init__(
        self, widths: Optional[Numbers] = None, *, dir: "Optional[str | os.PathLike[str]]" = None,
        resume_from: "Optional[str | os.PathLike[str]]" = None, evaluate: Optional[SupportsFloat] = None, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        self._prepare(widths, evaluate, **options)
        self._dir, self._resume_from = dir, resume_from

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, optimizer: Any = None, **_: Any) -> None:
        directory = self._dir or os.path.join(args.output_dir, "snapshots")
        self._end_attachment()
        self.recorder = self._make(model, dir=directory)
        if self.recorder.is_sharded:
            raise InputsError("parameters are sharded; use posthocema.torch.Recorder with distributed checkpoints")
        if state.global_step:
            self._load(self.recorder, args, state)
        self._counts = inner_optimizer(optimizer)[1]
        if not self._counts:
            self._detach = self.recorder.attach(optimizer)

    def _load(self, recorder: Recorder, args: Any, state: Any) -> None:
        checkpoint = self._resume_from or _find_checkpoint() or self._checkpoint(args, state)
        path = os.path.join(checkpoint, _STATE)
        if not os.path.exists(path):
            raise InputsError(f"the training continues at step {state.global_step}, but {path} is missing; give resume_from")
        recorder.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))

    @staticmethod
    def _checkpoint(args: Any, state: Any) -> str:
        return os.path.join(args.output_dir, f"checkpoint-{state.global_step}")

    def on_save(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        if self.recorder is None or not self.recorder.is_writer:
            return
        checkpoint = self._checkpoint(args, state)
        held = self.recorder.state_dict()
        write_files({os.path.join(checkpoint, _STATE): lambda file: torch.save(held, file)}, replaces=os.path.lexists)
        if self._evaluate is not None and self.recorder.n_steps and hasattr(unwrap(model), "save_pretrained"):
            with self.recorder.copy_to(width=self._evaluate):
                unwrap(model).save_pretrained(os.path.join(checkpoint, "average"))

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._give_back()  # where another callback has called the evaluation off

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self._counts and self.recorder is not None:
            self.recorder.step()
        self._end_of_step(args, control)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._end_of_step(args, control)

    def _end_of_step(self, args: Any, control: Any) -> None:
        if control.should_training_stop:
            self._save_end()
        if control.should_evaluate:
            self._lend(args.world_size > 1)

    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._give_back()

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._end_attachment()
        if not args.load_best_model_at_end:
            self._save_end()
        elif self.recorder is not None:
            if not self.recorder.is_saved:
                log.warning("step %d: the end is not saved: the model is the best one now", self.recorder.n_steps)
            if self._evaluate is not None and state.best_model_checkpoint:
                self._load_best(self.recorder, os.path.join(state.best_model_checkpoint, _STATE))

    def _load_best(self, recorder: Recorder, path: str) -> None:
        """The best model is the average that was evaluated."""
        saved = torch.load(path, map_location="cpu", weights_only=True)
        k, entries = _find_width("width", recorder.widths, self._evaluate), recorder._entries(recorder.model)
        with torch.no_grad():
            for name, first in recorder._first.items():
                entries[name].copy_(sum(held[k][first] for held in (saved["averages"], saved["residuals"]) if held))
