# SPDX-License-Identifier: Apache-2.0
"""PostHocEMA with the method names of ema-pytorch and pytorch-posthoc-ema: docs/migration.md.

Widths are what they are called, whatever update_every is; averages are float32; snapshots appear whole; averages are
made in one pass, one tensor at a time.
"""

from __future__ import annotations

import contextlib
import copy
import os
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union

import torch

from ._snapshot_files import find_snapshots
from .averages import PathLike, Plan, Series, gamma as gamma_of, open, sigma_rel as sigma_rel_of
from .errors import InputsError, UsageError
from .torch import Recorder, unwrap

__all__ = ["PostHocEMA", "SynthesizedEMA"]


class SynthesizedEMA(torch.nn.Module):
    """A copy of the model with the parameters of an average; called like the model."""

    def __init__(self, ema_model: torch.nn.Module) -> None:
        super().__init__()
        self.ema_model = ema_model

    def forward(self, *arguments: Any, **options: Any) -> Any:
        return self.ema_model(*arguments, **options)


class PostHocEMA:
    """As in ema-pytorch: ``PostHocEMA(model, sigma_rels=(0.05, 0.28)).update()`` after every step of the optimizer.

    Takes sigma_rels or gammas. ema_model: makes an empty model for synthesize_ema_model(); default: a deep copy.
    checkpoint_every_num_steps: "manual" for checkpoint() alone.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        ema_model: Optional[Callable[[], torch.nn.Module]] = None,
        sigma_rels: Optional[Sequence[float]] = None,
        gammas: Optional[Sequence[float]] = None,
        checkpoint_every_num_steps: Union[int, str] = 1000,
        checkpoint_folder: PathLike = "./post-hoc-ema-checkpoints",
        checkpoint_dtype: Optional[torch.dtype] = torch.float16,
        update_every: int = 100,
        allow_different_devices: bool = False,
        move_ema_to_online_device: bool = False,
        _trainable_only: bool = False,
    ) -> None:
        if (sigma_rels is None) == (gammas is None):
            raise UsageError("sigma_rels: expected these or gammas")
        widths = [sigma_rel_of(g) for g in gammas] if gammas is not None else list(sigma_rels or ())
        every = 0 if checkpoint_every_num_steps == "manual" else int(checkpoint_every_num_steps)
        self.checkpoint_folder = Path(checkpoint_folder)
        self._online, self._make_model = model, ema_model
        self._most: Optional[int] = None  # times of snapshots that are kept
        self._written: List[List[str]] = []
        self._open_options: Dict[str, Any] = {}
        self._strict = not _trainable_only
        self._recorder: Optional[Recorder] = Recorder(
            model, widths, dir=self.checkpoint_folder, every=0, dtype=checkpoint_dtype, update_every=update_every,
            trainable_only=_trainable_only,
        )  # fmt: skip
        self._every = every

    # ---- Training ----

    @property
    def recorder(self) -> Recorder:
        if self._recorder is None:
            raise UsageError(
                "from_path() has no model to follow; to continue, call load_state_dict() of from_model() in this directory"
            )
        return self._recorder

    @property
    def model(self) -> Any:
        return self._online

    @property
    def step(self) -> torch.Tensor:
        return torch.tensor(self.recorder.n_steps)

    @property
    def gammas(self) -> Tuple[float, ...]:
        """The exponents of the averages."""
        return tuple(gamma_of(width) for width in self.recorder.widths)

    @property
    def sigma_rels(self) -> Tuple[float, ...]:
        return self.recorder.widths

    @property
    def update_every(self) -> int:
        return self.recorder.update_every

    def to(self, *_: Any, **__: Any) -> "PostHocEMA":
        """Itself: averages are where the parameters are."""
        return self

    @property
    def num_ema_models(self) -> int:
        return len(self.recorder.widths)

    @property
    def device(self) -> torch.device:
        return next(self._online.parameters()).device

    def update(self) -> None:
        """After every step of the optimizer."""
        self.recorder.step()
        if self._every and self.recorder.n_steps % self._every == 0:
            self.checkpoint()

    def checkpoint(self) -> List[str]:
        """Writes a snapshot of each width. Returns their paths."""
        paths = self.recorder.save()
        self._written = [written for written in self._written if written != paths] + [paths]
        while self._most is not None and len(self._written) > self._most:
            for path in self._written.pop(0):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)
        return paths

    def copy_params_from_model_to_ema(self) -> None:
        if self.recorder.n_steps:
            raise UsageError("averages that restart in a training are no longer those of their widths")

    def copy_params_from_ema_to_model(self) -> None:
        """The model gets the average of the last width."""
        state = self._online.state_dict()
        with torch.no_grad():
            for name, average in self.recorder.average(self.recorder.widths[-1]).items():
                state[name].copy_(average)

    def __call__(self, *arguments: Any, **options: Any) -> Tuple[Any, ...]:
        """What the model makes with the average of each width."""
        results = []
        for width in self.recorder.widths:
            with torch.no_grad(), self.recorder.copy_to(self._online, width) as model:
                results.append(model(*arguments, **options))
        return tuple(results)

    def state_dict(self) -> Any:
        """For the trainer's checkpoint: a run that loads it continues exactly."""
        return self.recorder.state_dict()

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        self.recorder.load_state_dict(state)
        steps: Dict[int, List[str]] = {}
        for step, path in find_snapshots(os.fspath(self.checkpoint_folder), self.recorder.prefix):
            if step <= self.recorder.n_steps:  # later ones are written again
                steps.setdefault(step, []).append(path)
        self._written = list(steps.values())

    # ---- Averages ----

    def open(self) -> Series:
        """The snapshots so far."""
        return open(self.checkpoint_folder, **self._open_options)

    @contextlib.contextmanager
    def _plan(self, width: float, step: Optional[int]) -> Iterator[Plan]:
        with self.open() as series, series.plan(width, at=step) as plan:
            yield plan

    def synthesize_ema_model(
        self, gamma: Optional[float] = None, sigma_rel: Optional[float] = None, step: Optional[int] = None
    ) -> SynthesizedEMA:
        """A model with the average of any width, at the newest snapshot or at a step."""
        if (sigma_rel is None) == (gamma is None):
            raise UsageError("sigma_rel: expected this or gamma")
        width = sigma_rel_of(gamma) if gamma is not None else float(sigma_rel or 0)
        made = self._make_model() if self._make_model else copy.deepcopy(self._online)
        with self._plan(width, step) as plan:
            plan.load_into(made, strict=self._strict)
        return SynthesizedEMA(made.requires_grad_(False))

    def reconstruction_error(
        self,
        target_sigma_rel_range: Optional[Tuple[float, float]] = None,
        num_target_points: int = 100,
        step: Optional[int] = None,
    ) -> Tuple[List[float], List[float]]:
        """Widths, and the predicted error of the average of each, at the newest snapshot or at a step.

        Errors are relative to the norm of all parameters; NaN where they are unknown. target_sigma_rel_range: default
        (0.05, 0.28). ``posthoc-ema plot errors`` draws the same.
        """
        first, last = target_sigma_rel_range or (0.05, 0.28)
        if num_target_points < 2 or not first < last:
            raise UsageError(
                f"target_sigma_rel_range, num_target_points: expected a range and 2 or more, found {first}, {last} "
                f"and {num_target_points}"
            )
        steps = num_target_points - 1
        widths = [first + (last - first) * i / steps for i in range(steps)] + [last]
        with self.open() as series, series.plan(widths, at=step) as plan:
            return [t.sigma_rel for t in plan.targets], [t.predicted_error for t in plan.targets]

    # ---- As in pytorch-posthoc-ema ----

    @classmethod
    def from_model(
        cls,
        model: torch.nn.Module,
        checkpoint_dir: PathLike,
        max_checkpoints: int = 20,
        sigma_rels: Optional[Sequence[float]] = None,
        update_every: int = 10,
        checkpoint_every: int = 1000,
        checkpoint_dtype: Optional[torch.dtype] = None,
        calculation_dtype: torch.dtype = torch.float32,
        only_save_diff: bool = False,
        update_after_step: int = 0,
    ) -> "ContextsEMA":
        """For update_(model) after every step of the optimizer.

        A run continues in its own directory: make it again, then load_state_dict() with the state of its checkpoint.
        calculation_dtype and update_after_step have no effect: averages are float32 or better, and begin at step 1.
        only_save_diff: parameters without requires_grad are not written; models keep their own.
        """
        if any(Path(checkpoint_dir).glob("[0-9]*.[0-9]*.pt")):  # of other libraries; a recorder knows those of its own run
            raise UsageError(f"{os.fspath(checkpoint_dir)}: has checkpoints already; from_path() reads them")
        if max_checkpoints < 1:
            raise UsageError(f"max_checkpoints: expected 1 or more, found {max_checkpoints}")
        made = ContextsEMA(
            model, sigma_rels=sigma_rels or (0.05, 0.28), checkpoint_every_num_steps=checkpoint_every,
            checkpoint_folder=checkpoint_dir, checkpoint_dtype=checkpoint_dtype, update_every=update_every,
            _trainable_only=only_save_diff,
        )  # fmt: skip
        made._most = max_checkpoints
        return made

    @classmethod
    def from_path(
        cls,
        checkpoint_dir: PathLike,
        model: Optional[torch.nn.Module] = None,
        max_checkpoints: int = 20,
        sigma_rels: Optional[Sequence[float]] = None,
        update_every: int = 10,
        only_save_diff: bool = False,
        **_: Any,
    ) -> "ContextsEMA":
        """Reads snapshots, also those that ema-pytorch or pytorch-posthoc-ema has written (INDEX.STEP.pt).

        For these give sigma_rels and update_every of the training: their true profiles follow from both.
        """
        made = ContextsEMA.__new__(ContextsEMA)
        made._online, made._make_model, made._recorder = model, None, None
        made.checkpoint_folder, made._most, made._written, made._every = Path(checkpoint_dir), None, [], 0
        made._open_options, made._strict = {}, not only_save_diff
        if any(made.checkpoint_folder.glob("*.pt")):
            made._open_options = {"input_sigma": list(sigma_rels or (0.05, 0.28)), "update_every": update_every}
        return made


class ContextsEMA(PostHocEMA):
    """What from_model() and from_path() return: ``model`` and ``state_dict`` make averages for a block."""

    def update_(self, model: torch.nn.Module) -> None:
        """After every step of the optimizer. The model may be in a wrapper of DDP or torch.compile."""
        if unwrap(model) is not self.recorder.model:
            raise UsageError("update_: expected the model of from_model()")
        self.update()

    @contextlib.contextmanager
    def model(
        self,
        model: torch.nn.Module,
        sigma_rel: float,
        step: Optional[int] = None,
        calculation_dtype: torch.dtype = torch.float32,
    ) -> Iterator[torch.nn.Module]:
        """The model has an average inside of the block, in eval mode; its own tensors after it."""
        before = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
        was_training = model.training
        try:
            with self._plan(sigma_rel, step) as plan:
                plan.load_into(model, strict=self._strict)
            yield model.eval()
        finally:
            model.load_state_dict(before)
            model.train(was_training)

    def state_dict(
        self,
        sigma_rel: Optional[float] = None,
        step: Optional[int] = None,
        calculation_dtype: torch.dtype = torch.float32,
    ) -> Any:
        """With sigma_rel: a context with the tensors of an average. Without: that of PostHocEMA, to resume."""
        return super().state_dict() if sigma_rel is None else self._state(sigma_rel, step)

    @contextlib.contextmanager
    def _state(self, sigma_rel: float, step: Optional[int]) -> Iterator[Dict[str, torch.Tensor]]:
        with self._plan(sigma_rel, step) as plan:
            yield plan.state_dict(kind="torch", dtype="f32")
