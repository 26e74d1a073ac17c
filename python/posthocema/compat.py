# SPDX-License-Identifier: Apache-2.0
"""EMA, KarrasEMA and PostHocEMA with the names of ema-pytorch and pytorch-posthoc-ema: docs/migration.md.

Widths are what they are called, whatever update_every is; averages are float32; snapshots appear whole; averages are
made in one pass, one tensor at a time.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import operator
import os
import re
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import torch
from torch.nn import Module

from ._snapshot_files import find_snapshots
from .averages import PathLike, Plan, Series, gamma as gamma_of, open, sigma_rel as sigma_rel_of
from .errors import InputsError, UsageError
from .torch import Recorder, _entries, _lerp, unwrap

__all__ = ["EMA", "KarrasEMA", "PostHocEMA", "SynthesizedEMA"]

Names = Iterable[str]
MakeModel = Union[Module, Callable[[], Module], None]


def _width(sigma_rel: Optional[float], gamma: Optional[float]) -> float:
    if (sigma_rel is None) == (gamma is None):
        raise UsageError("sigma_rel: expected this or gamma")
    return sigma_rel_of(gamma) if gamma is not None else float(sigma_rel or 0)


def _tensors(model: Module) -> Dict[str, torch.Tensor]:
    """The parameters and buffers that are averaged."""
    found = itertools.chain(unwrap(model).named_parameters(), unwrap(model).named_buffers())
    return {name: t.data for name, t in found if t.is_floating_point() or t.is_complex()}


@torch.no_grad()
def _copy(to: Mapping[str, torch.Tensor], of: Mapping[str, torch.Tensor]) -> None:
    for name, tensor in to.items():
        if name not in of:
            raise InputsError(f"'{name}': is in one of the models only; make ema_model like the model")
        tensor.copy_(of[name])
    torch.clear_autocast_cache()  # has casts of what they were


@torch.inference_mode(False)  # else it could get averages there alone
def _make(make: MakeModel, model: Module) -> Module:
    """A copy of the model; of one that cannot be copied another, which ``make`` is or returns."""
    if make is None:
        return copy.deepcopy(unwrap(model)).requires_grad_(False)
    made: Module = make if isinstance(make, Module) else make()
    _copy(_entries(made, loads=True), _entries(unwrap(model)))
    return made.requires_grad_(False)


class _Average(Module):
    """``ema_model`` is a model with an average of ``model``; called like the model."""

    ema_model: Any
    online_model: Any  # in a list, where it is no part of this module

    @property
    def model(self) -> Any:
        return self.online_model[0] if isinstance(self.online_model, list) else self.online_model

    def forward(self, *arguments: Any, **options: Any) -> Any:
        return self.ema_model(*arguments, **options)

    def eval(self) -> Any:
        """Of the average alone, which is returned."""
        return self.ema_model.eval()

    def copy_params_from_ema_to_model(self) -> None:
        _copy(_tensors(self.model), _tensors(self.ema_model))


class SynthesizedEMA(_Average):
    """A copy of the model with the parameters of an average."""

    def __init__(self, model: Any, ema_model: Module, gamma: float) -> None:
        super().__init__()
        self.online_model, self.ema_model, self.gamma = [model], ema_model, gamma


_EMA_OPTIONS: Dict[str, Any] = {
    "inv_gamma": 1.0, "power": 2 / 3, "min_value": 0.0, "param_or_buffer_names_no_ema": (), "ignore_names": (),
    "ignore_startswith_names": (), "allow_different_devices": False, "use_foreach": False, "update_model_with_ema_every": None,
    "update_model_with_ema_beta": 0.0, "forward_method_names": (), "move_ema_to_online_device": False, "coerce_dtype": False,
}  # fmt: skip


class EMA(_Average):
    """The average of ema-pytorch's EMA, with decay beta and its warm-up, to the last bit.

    Takes its options. allow_different_devices, coerce_dtype and use_foreach have no effect: it is always so. Options of
    PostHocEMA, such as checkpoint_folder and sigma_rels, record snapshots, too: ``post_hoc`` is that PostHocEMA.
    """

    def __init__(
        self, model: Module, ema_model: MakeModel = None, beta: float = 0.9999, update_after_step: int = 100, update_every: int = 10,
        *, include_online_model: bool = True, lazy_init_ema: bool = False, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        if not isinstance(model, Module):
            raise TypeError(f"model: expected a torch module, found {type(model).__name__}; ema-pytorch itself averages trees of tensors")
        self.online_model, self.ema_model = model if include_online_model else [model], None
        self.beta, self.update_after_step, self.update_every = beta, update_after_step, update_every
        self.__dict__.update({name: options.pop(name, default) for name, default in _EMA_OPTIONS.items()})
        self.register_buffer("initted", torch.tensor(False))
        self.register_buffer("step", torch.tensor(0))
        if not lazy_init_ema:
            self.init_ema(ema_model)
        if options and "gammas" not in options:
            options.setdefault("sigma_rels", (0.05, 0.28))
        self.post_hoc = PostHocEMA(model, update_every=update_every, **options) if options else None

    def init_ema(self, ema_model: MakeModel = None) -> None:
        self.ema_model = _make(ema_model, self.model)
        for name in self.forward_method_names:
            setattr(self, name, getattr(self.ema_model, name))

    def add_to_optimizer_post_step_hook(self, optimizer: Any) -> Any:
        return optimizer.register_step_post_hook(lambda *_: self.update())

    @torch.no_grad()
    def forward_eval(self, *arguments: Any, **options: Any) -> Any:
        return self.ema_model(*arguments, **options)

    def restore_ema_model_device(self) -> None:
        self.ema_model.to(self.initted.device)

    def copy_params_from_model_to_ema(self) -> None:
        _copy(_tensors(self.ema_model), _tensors(self.model))

    def update_model_with_ema(self, decay: Optional[float] = None) -> None:
        """The model becomes the average; with decay it keeps this share of itself."""
        decay = self.update_model_with_ema_beta if decay is None else decay
        if decay == 0:
            self.copy_params_from_ema_to_model()
        else:
            self.update_moving_average(self.model, self.ema_model, decay)

    def get_current_decay(self) -> float:
        epoch = (self.step - self.update_after_step - 1).clamp(min=0.0)
        value = 1 - (1 + epoch / self.inv_gamma) ** -self.power
        return float(value.clamp(min=self.min_value, max=self.beta)) if epoch > 0 else 0.0

    def update(self) -> None:
        """After every step of the optimizer."""
        if self.post_hoc is not None:
            self.post_hoc.update()
        step, is_begun = int(self.step), bool(self.initted)
        self.step += 1
        is_due = step % self.update_every == 0
        if self.ema_model is None:
            self.init_ema()
        if not is_begun or (is_due and step <= self.update_after_step):
            self.copy_params_from_model_to_ema()
            self.initted.fill_(True)
            return
        if is_due:
            self.update_moving_average(self.ema_model, self.model)
        if self.update_model_with_ema_every and step % self.update_model_with_ema_every == 0:
            self.update_model_with_ema()

    @torch.no_grad()
    def update_moving_average(self, ma_model: Module, current_model: Module, current_decay: Optional[float] = None) -> None:
        if self.beta == 1:
            return
        if self.move_ema_to_online_device:
            ma_model.to(next(current_model.parameters()).device)
        decay = self.get_current_decay() if current_decay is None else current_decay
        held, current = _tensors(ma_model), _tensors(current_model)
        ignored = {n for n in held if n in self.ignore_names or n.startswith(tuple(self.ignore_startswith_names))}
        copied = {n for n in held if n in self.param_or_buffer_names_no_ema} - ignored
        _copy({n: held[n] for n in copied}, current)
        names = [n for n in held if n not in ignored | copied]
        if names:
            _lerp([held[n] for n in names], [current[n].to(held[n]) for n in names], 1.0 - decay)


class _Recording(Module):
    """A module whose averages are those of a recorder: its state is the recorder's, and they move to its device."""

    recorder: Any
    _alongside: Sequence[Module] = ()  # these move with it, but are no part of its state

    @property
    def step(self) -> torch.Tensor:
        return torch.tensor(self.recorder.n_steps)

    @property
    def update_every(self) -> int:
        return int(self.recorder.update_every)

    @property
    def device(self) -> torch.device:
        """Of the averages."""
        return next(iter(self.recorder._averages[0])).device

    def _apply(self, fn: Any, *arguments: Any) -> Any:
        device = fn(torch.empty(0, device=self.device)).device  # the dtype of averages stays
        if device != self.device:
            self.recorder.to(device)
        for module in self._alongside:
            module._apply(fn, *arguments)
        return super()._apply(fn, *arguments)

    def get_extra_state(self) -> Any:
        return self.recorder.state_dict()

    def set_extra_state(self, state: Any) -> None:
        self.recorder.load_state_dict(state)

    def load_state_dict(self, state: Mapping[str, Any], *arguments: Any, **options: Any) -> Any:
        """A run that loads the state of state_dict() continues exactly. Takes that of ``recorder``, too."""
        own = state if "_extra_state" in state else {"_extra_state": state}
        return super().load_state_dict(own, *arguments, **options)

    def copy_params_from_model_to_ema(self) -> None:
        if self.recorder.n_steps:
            raise UsageError("averages that restart in a training are no longer those of their widths")


def _left_out(
    param_or_buffer_names_no_ema: Names = (), ignore_names: Names = (), ignore_startswith_names: Names = (),
    allow_different_devices: bool = False, move_ema_to_online_device: bool = False,
) -> List[str]:  # fmt: skip
    """Expressions for the tensors that these options leave out of averages. Devices may always differ."""
    names = [f"^{re.escape(name)}$" for name in (*param_or_buffer_names_no_ema, *ignore_names)]
    return names + [f"^{re.escape(name)}" for name in ignore_startswith_names]


class KarrasEMA(_Recording, _Average):
    """One power-function average in memory, of a width sigma_rel or exponent gamma.

    ``ema_model`` is a copy of the model, made when it is first asked for, and gets the average each time it is asked for.
    Tensors of param_or_buffer_names_no_ema, ignore_names and ignore_startswith_names are those of the model.
    """

    def __init__(
        self, model: Module, sigma_rel: Optional[float] = None, gamma: Optional[float] = None, ema_model: MakeModel = None,
        update_every: int = 100, _recorder: Optional[Recorder] = None, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        self.sigma_rel = _width(sigma_rel, gamma)
        self.gamma = gamma_of(self.sigma_rel)
        self.online_model, self._make_model = [model], [ema_model]
        self._alongside: List[Module] = []  # the copy of the model
        left_out, self._is_shared = _left_out(**options), _recorder is not None
        self.recorder = _recorder or Recorder(model, self.sigma_rel, every=0, update_every=update_every, exclude=left_out)

    @property
    def beta(self) -> float:
        """The factor of an update at this step."""
        return float((1 - min(1, self.update_every / max(1, self.recorder.n_steps))) ** (self.gamma + 1))

    @property
    def ema_model(self) -> Any:
        self._alongside = self._alongside or [_make(self._make_model[0], self.model)]
        _copy(_entries(self._alongside[0], loads=True), {**_entries(unwrap(self.model)), **self.recorder.average(self.sigma_rel)})
        return self._alongside[0]

    def update(self) -> None:
        """After every step of the optimizer."""
        if self._is_shared:
            raise UsageError("update: the PostHocEMA updates its averages together; each step would count twice")
        self.recorder.step()


class PostHocEMA(_Recording):
    """As in ema-pytorch: ``PostHocEMA(model, sigma_rels=(0.05, 0.28)).update()`` after every step of the optimizer.

    Takes sigma_rels or gammas. ema_model: makes an empty model for averages; default: a deep copy. ``ema_models`` [n_widths]
    are KarrasEMA, whose options are taken, too. checkpoint_every_num_steps: "manual" for checkpoint() alone.
    """

    def __init__(
        self, model: Module, ema_model: Optional[Callable[[], Module]] = None,
        sigma_rels: Optional[Sequence[float]] = None, gammas: Optional[Sequence[float]] = None,
        checkpoint_every_num_steps: Union[int, str] = 1000, checkpoint_folder: PathLike = "./post-hoc-ema-checkpoints",
        checkpoint_dtype: Optional[torch.dtype] = torch.float16, update_every: int = 100, _trainable_only: bool = False, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        left_out = _left_out(**options)
        if (sigma_rels is None) == (gammas is None):
            raise UsageError("sigma_rels: expected these or gammas")
        widths = [sigma_rel_of(g) for g in gammas] if gammas is not None else list(sigma_rels or ())
        every = 0 if checkpoint_every_num_steps == "manual" else int(checkpoint_every_num_steps)
        recorder = Recorder(
            model, widths, dir=checkpoint_folder, every=0, dtype=checkpoint_dtype, update_every=update_every,
            exclude=left_out, trainable_only=_trainable_only,
        )  # fmt: skip
        self._follow(model, ema_model, checkpoint_folder, not (_trainable_only or left_out), recorder)
        self._every, self.num_ema_models = every, len(widths)
        self.sigma_rels, self.gammas = tuple(widths), tuple(gamma_of(width) for width in widths)
        self.ema_models = [KarrasEMA(model, width, ema_model=ema_model, _recorder=recorder) for width in widths]
        self._alongside = self.ema_models

    def _follow(
        self, model: Optional[Module], make: MakeModel, folder: PathLike, strict: bool, recorder: Optional[Recorder] = None
    ) -> None:
        self._online, self._make_model, self.checkpoint_folder, self._strict = [model], make, Path(folder), strict
        self._recorder = recorder
        self._most: Optional[int] = None  # times of snapshots that are kept
        self._written: List[List[str]] = []
        self._open_options: Dict[str, Any] = {}

    # ---- Training ----

    @property
    def recorder(self) -> Recorder:
        if self._recorder is None:
            raise UsageError("from_path() has no model to follow; to continue, call load_state_dict() of from_model() in this directory")
        return self._recorder

    @property
    def model(self) -> Any:
        return self._online[0]

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

    def copy_params_from_ema_to_model(self) -> None:
        """The model gets the average of the last width."""
        average = self.recorder.average(self.recorder.widths[-1])
        _copy({n: t for n, t in _entries(unwrap(self._online[0]), loads=True).items() if n in average}, average)

    def forward(self, *arguments: Any, **options: Any) -> Tuple[Any, ...]:
        """What the model makes with the average of each width."""
        results = []
        for width in self.recorder.widths:
            with torch.no_grad(), self.recorder.copy_to(self._online[0], width) as model:
                results.append(model(*arguments, **options))
        return tuple(results)

    def set_extra_state(self, state: Any) -> None:
        self.recorder.load_state_dict(state)
        found = itertools.groupby(find_snapshots(os.fspath(self.checkpoint_folder), self.recorder.prefix), operator.itemgetter(0))
        self._written = [[path for _, path in paths] for step, paths in found if step <= self.recorder.n_steps]  # others are written again

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
        width = _width(sigma_rel, gamma)
        made = _make(self._make_model, self._online[0])
        with self._plan(width, step) as plan:
            plan.load_into(made, strict=self._strict)
        return SynthesizedEMA(self._online[0], made, gamma_of(width))

    def reconstruction_error(
        self, target_sigma_rel_range: Optional[Tuple[float, float]] = None, num_target_points: int = 100, step: Optional[int] = None
    ) -> Tuple[List[float], List[float]]:
        """Widths, and the predicted error of the average of each, at the newest snapshot or at a step.

        Errors are relative to the norm of all parameters; NaN where they are unknown. target_sigma_rel_range: default
        (0.05, 0.28). ``posthoc-ema plot errors`` draws the same.
        """
        first, last = target_sigma_rel_range or (0.05, 0.28)
        if num_target_points < 2 or not first < last:
            raise UsageError(f"target_sigma_rel_range, num_target_points: expected a range and 2 or more, found {first}, {last}, {num_target_points}")
        steps = num_target_points - 1
        widths = [first + (last - first) * i / steps for i in range(steps)] + [last]
        with self.open() as series, series.plan(widths, at=step) as plan:
            return [t.sigma_rel for t in plan.targets], [t.predicted_error for t in plan.targets]

    # ---- As in pytorch-posthoc-ema ----

    @classmethod
    def from_model(
        cls, model: Module, checkpoint_dir: PathLike, max_checkpoints: int = 20, sigma_rels: Optional[Sequence[float]] = None,
        update_every: int = 10, checkpoint_every: int = 1000, checkpoint_dtype: Optional[torch.dtype] = None,
        calculation_dtype: torch.dtype = torch.float32, only_save_diff: bool = False, update_after_step: int = 0,
    ) -> "ContextsEMA":  # fmt: skip
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
        cls, checkpoint_dir: PathLike, model: Optional[Module] = None, max_checkpoints: int = 20,
        sigma_rels: Optional[Sequence[float]] = None, update_every: int = 10, only_save_diff: bool = False, **_: Any,
    ) -> "ContextsEMA":  # fmt: skip
        """Reads snapshots, also those that ema-pytorch or pytorch-posthoc-ema has written (INDEX.STEP.pt).

        For these give sigma_rels and update_every of the training: their true profiles follow from both.
        """
        made = ContextsEMA.__new__(ContextsEMA)
        Module.__init__(made)
        made._follow(model, None, checkpoint_dir, not only_save_diff)
        if any(made.checkpoint_folder.glob("*.pt")):
            made._open_options = {"input_sigma": list(sigma_rels or (0.05, 0.28)), "update_every": update_every}
        return made


class ContextsEMA(PostHocEMA):
    """What from_model() and from_path() return: ``model`` and ``state_dict`` make averages for a block."""

    def update_(self, model: Module) -> None:
        """After every step of the optimizer. The model may be in a wrapper of DDP or torch.compile."""
        if unwrap(model) is not self.recorder.model:
            raise UsageError("update_: expected the model of from_model()")
        self.update()

    @contextlib.contextmanager
    def model(
        self, model: Module, sigma_rel: float, step: Optional[int] = None, calculation_dtype: torch.dtype = torch.float32
    ) -> Iterator[Module]:
        """The model has an average inside of the block, in eval mode; its own tensors after it."""
        before = {name: tensor.detach().clone() for name, tensor in _entries(unwrap(model), loads=True).items()}
        was_training = model.training
        try:
            with self._plan(sigma_rel, step) as plan:
                plan.load_into(model, strict=self._strict)
            yield model.eval()
        finally:
            _copy(_entries(unwrap(model)), before)
            model.train(was_training)

    def state_dict(
        self, sigma_rel: Optional[float] = None, step: Optional[int] = None, calculation_dtype: torch.dtype = torch.float32, **options: Any
    ) -> Any:
        """With sigma_rel: a context with the tensors of an average, in the dtypes of the model, or float32 where there is none.

        Without: that of PostHocEMA, to resume.
        """
        return super().state_dict(**options) if sigma_rel is None else self._state(sigma_rel, step)

    @contextlib.contextmanager
    def _state(self, sigma_rel: float, step: Optional[int]) -> Iterator[Dict[str, torch.Tensor]]:
        own: Dict[str, torch.Tensor] = _entries(unwrap(self._online[0])) if self._online[0] is not None else {}
        with self._plan(sigma_rel, step) as plan:
            yield {n: t.to(own[n].dtype if n in own else t.dtype) for n, t in plan.state_dict(kind="torch", dtype="f32").items()}
