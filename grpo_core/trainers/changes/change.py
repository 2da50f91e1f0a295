"""A change: a possible deviation of a trainer from its settings, which can be applied to an update."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from grpo_core.record import Step
from grpo_core.trainers.changes.numbers import Apply, Update

Parameters = tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Change:
    """One possible deviation of a trainer from its settings.

    Attributes:
        name: name of the cause, a key of ``CAUSES``.
        part: the part of the update that it changes; two changes of one part are not tried together.
        apply: function from update, step, pass and parameters to the step as it would be in that pass; None if not
            applicable.
        starts: starting points for fitting its parameters; empty if it has none.
        low, high: bounds of every parameter.
        added: (N, M), an addition to each micro-batch's loss that a step cannot represent, if any.
    """

    name: str
    part: str
    apply: Callable[[Update, Step, int, Parameters], Step | None]
    starts: tuple[Parameters, ...] = ()
    low: float = 0.0
    high: float = 1e6
    added: Callable[[Update], np.ndarray] | None = None
    detail: str = ""

    def bound(self, parameters: Parameters) -> Apply:
        """Return the change as a function with fixed parameters."""
        return lambda update, step, n: self.apply(update, step, n, parameters)


@dataclass(frozen=True, kw_only=True)
class Factor:
    """Coefficients that can all be wrong by a common factor: the cause's name, and the columns."""

    name: str
    columns: tuple[int, ...]


def combined(*changes: Apply) -> Apply:
    """Compose changes, which are applied in this order."""

    def apply(update: Update, step: Step, n: int) -> Step | None:
        now: Step | None = step
        for change in changes:
            now = None if now is None else change(update, now, n)
        return now

    return apply


def under(step: Step, **switches: Any) -> Step:
    """Return the update under other settings of the objective. Recorded parts, denominators and advantages are kept."""
    objective = step.settings.objective.replace(**switches)
    return dataclasses.replace(step, settings=dataclasses.replace(step.settings, objective=objective))


def switched(name: str, part: str, **switches: Any) -> Change:
    return Change(name=name, part=part, apply=lambda update, step, n, p: under(step, **switches))


def fitted(name: str, part: str, fields: tuple[str, ...], starts: tuple[Parameters, ...], **more: Any) -> Change:
    """Return a change that sets numbers of the objective to fitted parameters.

    Each of ``fields`` gets one parameter. If there are fewer parameters, the last one is used for all remaining fields.
    """

    def apply(update: Update, step: Step, n: int, p: Parameters) -> Step:
        values = (*p, *(p[-1:] * (len(fields) - len(p))))
        return under(step, **dict(zip(fields, values, strict=True)))

    return Change(name=name, part=part, apply=apply, starts=starts, **more)


def replaced(name: str, part: str, detail: str = "", **make: Callable[[Update, Step, int], Any]) -> Change:
    """Return a change that replaces arrays of the step.

    ``make``: field -> function that creates the array, or returns None if that is not possible.
    """

    def apply(update: Update, step: Step, n: int, p: Parameters) -> Step | None:
        made = {field: function(update, step, n) for field, function in make.items()}
        if any(value is None for value in made.values()):
            return None
        return dataclasses.replace(step, **made)

    return Change(name=name, part=part, detail=detail, apply=apply)


def scaled(step: Step, factor: Factor, by: float) -> Step | None:
    """Return the update with the columns of the loss in ``factor`` multiplied by ``by``.

    The columns are surrogate, KL and entropy bonus. None for a KL below 0, which no settings give.
    """
    o = step.settings.objective
    if 1 in factor.columns and o.beta * by < 0:
        return None
    if 0 in factor.columns:
        gate = np.full(step.mask.shape, by) if step.gate is None else step.gate * by
        step = dataclasses.replace(step, gate=gate)
    if 1 in factor.columns and o.beta:
        step = under(step, beta=o.beta * by)
    if 2 in factor.columns and step.entropy_coefficient is not None:
        step = dataclasses.replace(step, entropy_coefficient=step.entropy_coefficient * by)
    elif 2 in factor.columns and o.entropy_bonus:
        step = under(step, entropy_bonus=o.entropy_bonus * by)
    return step


def known(values: np.ndarray, there: np.ndarray) -> np.ndarray:
    """Return ``values`` (..., B, T) with 0 in padding and for unscored tokens, like the trainer's tensors."""
    return np.asarray(np.where(there, np.nan_to_num(values), 0.0))


def shifted(values: np.ndarray | None, there: np.ndarray, by: int) -> np.ndarray | None:
    """Rotate ``values`` (..., B, T) by ``by`` positions to the right."""
    return None if values is None else np.roll(known(values, there), by, axis=-1)


def fitting(values: np.ndarray | None, like: np.ndarray) -> np.ndarray | None:
    """Truncate ``values`` (B, T') of another update, or pad them with 0, to the width of ``like`` (B, T).

    None if the number of completions differs.
    """
    if values is None or len(values) != len(like):
        return None
    whole = np.zeros_like(like)
    width = min(values.shape[-1], like.shape[-1])
    whole[..., :width] = values[..., :width]
    return whole
