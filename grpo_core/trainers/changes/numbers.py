"""The numbers of one recorded update as arrays: the trainer's, and those of the training functions.

A loss is a sum of three columns with a coefficient each: minus the surrogate (1), the KL (β) and the entropy bonus (1).
A wrong factor on one of the columns can therefore be found by least squares.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from grpo_core import recompute
from grpo_core.baselines import BASELINES
from grpo_core.deviations import DEVIATIONS
from grpo_core.errors import SettingsError
from grpo_core.record import Step
from grpo_core.trainers.changes.precision import Precision, in_bfloat16, moved_by_rounding, precision_of
from grpo_core.trainers.importers import nemo_rl_settings

SINGLE = float(np.finfo(np.float32).eps)
AGGREGATION = "multi_objective_aggregation"
"""TRL's setting for how several reward functions are combined into one advantage."""
LOSS_STEPS = 4
"""Maximum rounding error of a loss, in units of the relative rounding error times the sum of all |summands|."""
BFLOAT16 = 2.0**-8
"""Relative rounding error of a bfloat16 number."""

Apply = Callable[["Update", Step, int], Step | None]
"""Function that returns the step as it would be in a pass, or None if the change is not applicable.

Its arguments are the update, its step as changed so far, and the index of the pass.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class Update:
    """One recorded update.

    Attributes:
        theirs: (N, M), the trainer's loss of each micro-batch, NaN if not recorded; None if the losses cannot be
            compared.
        skipped: the reason why the losses cannot be compared; empty if they can.
        previous: the previous update; None for the first.
        reports: the trainer's reports, by its step number: name -> number.
    """

    step: Step
    theirs: np.ndarray | None = None
    skipped: str = ""
    processes: int = 1
    previous: Step | None = None
    reports: Mapping[int, Mapping[str, float]] = field(default_factory=dict)

    @cached_property
    def precision(self) -> Precision | None:
        """Precision of log-probabilities in the file. None if it is as high as the trainer's."""
        return precision_of(self.step)

    @cached_property
    def rounding(self) -> float:
        """Relative rounding error of a sum, due to trainer and file."""
        if in_bfloat16(self.step):
            return BFLOAT16
        return SINGLE if self.precision is None else max(SINGLE, self.precision.relative)

    @cached_property
    def moved(self) -> list[np.ndarray]:
        """Maximum effect of the file's rounding on each micro-batch's loss, (M,) for each pass."""
        step, precision = self.step, self.precision
        if precision is None:
            return [np.zeros(1 + int(step.part.max(initial=0))) for _ in range(step.passes)]
        return [moved_by_rounding(step, n, precision) for n in range(step.passes)]

    @cached_property
    def sizes(self) -> list[np.ndarray]:
        """Sum of the magnitudes of the terms of each micro-batch's loss, (M,) for each pass."""
        each = [(step := self.step, n, recompute.terms(step, n)) for n in range(self.step.passes)]
        return [np.bincount(step.part[n].clip(0), np.abs(t.weight * t.token_loss).sum(axis=1)) for step, n, t in each]


@dataclass(frozen=True, kw_only=True, eq=False)
class Numbers:
    """K numbers of an update, ours and the trainer's.

    Attributes:
        columns: (K, J); their sum weighted by ``coefficients`` (J,) yields our numbers.
        theirs: (K,), the trainer's numbers.
        allowed: (K,), maximum differences explained by rounding.
        places: (K, 2) integer: pass and micro-batch, or 0 and the completion.
    """

    columns: np.ndarray
    coefficients: np.ndarray
    theirs: np.ndarray
    allowed: np.ndarray
    places: np.ndarray

    @property
    def ours(self) -> np.ndarray:
        return np.asarray(self.columns @ self.coefficients)

    def scaled(self, columns: Sequence[int], by: float) -> Numbers:
        """Return the numbers with the coefficients of these columns multiplied by ``by``.

        The allowed rounding error grows accordingly.
        """
        coefficients = self.coefficients.copy()
        coefficients[list(columns)] *= by
        return dataclasses.replace(self, coefficients=coefficients, allowed=self.allowed * max(1.0, abs(by)))

    def excess(self) -> np.ndarray:
        """Return the differences relative to the rounding tolerance, (K,). Numbers above 1 deviate."""
        off = np.abs(self.ours - self.theirs)
        with np.errstate(divide="ignore", invalid="ignore"):
            measured = off / self.allowed
        return np.where(off == 0.0, 0.0, np.where(np.isfinite(measured), measured, np.inf))


def of_loss(update: Update, apply: Apply | None = None, added: np.ndarray | None = None) -> Numbers | None:
    """Compute the loss of each micro-batch.

    Args:
        apply: the change to apply, if any.
        added: (N, M), an addition to each micro-batch's loss.

    Returns:
        The numbers. None if the change is not applicable, or nothing can be compared.
    """
    step, theirs = update.step, update.theirs
    if theirs is None:
        return None
    columns, allowed, places, beta = [], [], [], 0.0
    for n in range(step.passes):
        used = step.part[n] >= 0
        known = [int(m) for m in np.unique(step.part[n][used]) if not np.isnan(theirs[n, m])]
        if not known:
            continue
        changed = step if apply is None else apply(update, step, n)
        if changed is None:
            return None
        objective = changed.settings.objective
        terms = recompute.terms(changed, n, given=changed.advantage)
        beta = 0.0 if terms.kl is None or objective.kl_in_reward else float(objective.beta)
        pushed = terms.weight * terms.surrogate
        size = np.abs(terms.weight * terms.token_loss) + (0.0 if terms.kl is None else np.abs(pushed))
        rows = [-pushed, np.zeros_like(pushed) if terms.kl is None else terms.weight * terms.kl, size]
        parts = changed.part[n][used]
        sums = [np.bincount(parts, row[used].sum(axis=1), minlength=theirs.shape[1]) for row in rows]
        rest = np.zeros(theirs.shape[1])
        if changed.entropy_coefficient is not None or objective.entropy_bonus:
            losses = recompute.part_losses(changed, n)
            rest[: len(losses)] = losses - (sums[0] + beta * sums[1])[: len(losses)]
        if added is not None:
            rest = rest + added[n]
        for m in known:
            column = np.array([sums[0][m], sums[1][m], rest[m]]) * update.processes
            scale = float(sums[2][m]) * update.processes + abs(float(column @ (1.0, beta, 1.0)))
            moved = float(update.moved[n][m]) * update.processes
            if moved and apply is not None:  # the effect of the file's rounding grows with the sum
                moved *= max(1.0, float(sums[2][m]) / max(float(update.sizes[n][m]), 1e-300))
            limit = LOSS_STEPS * update.rounding * scale + moved + 1e-12
            columns.append(column)
            allowed.append(limit if np.isfinite(limit) else 0.0)  # rounding does not explain a non-finite loss
            places.append((n, m))
    if not columns:
        return None
    index = np.array(places)
    return Numbers(
        columns=np.array(columns),
        coefficients=np.array([1.0, beta, 1.0]),
        theirs=theirs[index[:, 0], index[:, 1]],
        allowed=np.array(allowed),
        places=index,
    )


def of_advantage(update: Update, apply: Apply | None = None) -> Numbers | None:
    """Compute the advantage of each scored completion. ``apply`` and a result of None are as in :func:`of_loss`."""
    step = update.step
    if step.advantage is None or step.advantage.ndim > 1 or np.isnan(step.rewards).all():
        return None
    if apply is None and step.settings.recorded.trainer_values.get(AGGREGATION) == "normalize_then_sum":
        return _normalised_then_summed(step)
    if apply is None and nemo_rl_settings.divides_by_others(step.settings.recorded.trainer_values):
        ours, allowed = nemo_rl_settings.advantages(step.rewards, step.group)
        return _by_row(ours, step.advantage, allowed, np.isfinite(ours))
    bare = dataclasses.replace(step, advantage=None)
    try:
        changed = bare if apply is None else apply(update, bare, 0)
        if changed is None:
            return None
        ours = advantages(update, changed)
    except SettingsError:
        return None
    objective = changed.settings.objective
    if ours.ndim > 1:
        return None
    size = float(np.nanmax(np.abs(changed.rewards)))
    spread = recompute.grouped(changed, changed.rewards)
    deviation = np.nanstd(spread, axis=-1, ddof=1) if spread.shape[-1] > 1 else np.zeros(len(spread))
    scaled = deviation[changed.group] + objective.std_epsilon if DEVIATIONS[objective.std].divides else 1.0
    # the trainer's rewards are float32: their rounding, divided by the spread
    allowed = 8 * SINGLE * size / scaled + 2e-6 * (1 + np.abs(ours))
    if update.precision is not None:
        allowed = allowed + update.precision.half_unit(step.advantage)
        allowed = allowed + 2 * float(update.precision.half_unit(size)) / scaled
    return _by_row(ours, step.advantage, np.broadcast_to(allowed, ours.shape), ~np.isnan(step.rewards))


def advantages(update: Update, step: Step) -> np.ndarray:
    """Return the advantages of ``step``, with batch statistics computed over each generation batch."""
    o = step.settings.objective
    generation = generations(update)
    of_batch = DEVIATIONS[o.std].of_batch or BASELINES[o.baseline].mean == "batch"
    if step.advantage is not None or not of_batch or not generation.any():
        return recompute.advantage(step)
    whole = np.zeros(len(step.rewards))
    for rows in (generation == g for g in np.unique(generation)):
        arrays = {name: getattr(step, name) for name in ("rewards", "mask", "old_logp", "ref_logp")}
        own: dict[str, Any] = {name: None if values is None else values[rows] for name, values in arrays.items()}
        group = np.unique(step.group[rows], return_inverse=True)[1]
        whole[rows] = recompute.advantage(dataclasses.replace(step, group=group, **own))
    return whole


def generations(update: Update) -> np.ndarray:
    """Return the generation batch of each completion within its update, (B,), or all 0 if unknown.

    Completions are sorted by process, and within a process by generation batch.
    """
    rows = np.arange(len(update.step.rewards))
    size = update.step.settings.recorded.trainer_values.get("generation_batch_size")
    if not isinstance(size, int) or size < update.processes or len(rows) % size or size % update.processes:
        return np.zeros_like(rows)
    return np.asarray(rows % (len(rows) // update.processes) // (size // update.processes))


def _normalised_then_summed(step: Step) -> Numbers | None:
    """Return the advantages with each reward function normalised within its group before the sum.

    This is GDPO (arXiv:2601.05242) as computed by TRL 1.16, over one generation batch. None if the update has several.
    """
    assert step.advantage is not None
    size = step.settings.recorded.trainer_values.get("generation_batch_size")
    if step.reward_parts is None or (size is not None and size != len(step.rewards)):
        return None
    parts, epsilon = step.reward_parts, 1e-4
    weights = np.asarray(step.settings.recorded.reward_weights or np.ones(parts.shape[1]), np.float64)
    ours, rounding = np.zeros(len(parts)), np.zeros(len(parts))
    for number, values in enumerate(parts.T):
        table = recompute.grouped(step, values)
        if np.isnan(table).all(axis=-1).any():
            return None
        mean, scale = np.nanmean(table, axis=-1), np.nanstd(table, axis=-1, ddof=1) + epsilon
        ours += np.nan_to_num(weights[number] * (values - mean[step.group]) / scale[step.group])
        rounding += abs(weights[number]) * 8 * SINGLE * np.nanmax(np.abs(values)) / scale[step.group]
    ours[np.isnan(parts).all(axis=1)] = np.nan
    scale = np.nanstd(ours, ddof=1) + epsilon
    ours, allowed = (ours - np.nanmean(ours)) / scale, (rounding.max() + 8 * SINGLE) / scale
    return _by_row(ours, step.advantage, allowed + 2e-6 * (1 + np.abs(ours)), ~np.isnan(ours))


def _by_row(ours: np.ndarray, theirs: np.ndarray, allowed: np.ndarray, rows: np.ndarray) -> Numbers:
    places = np.flatnonzero(rows)
    return Numbers(
        columns=ours[rows][:, None],
        coefficients=np.ones(1),
        theirs=theirs[rows],
        allowed=allowed[rows],
        places=np.stack([np.zeros_like(places), places], axis=1),
    )
