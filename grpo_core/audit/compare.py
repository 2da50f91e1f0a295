"""One recorded update held against its recomputation: advantages by completion, losses by micro-batch."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from grpo_core import recompute
from grpo_core.audit.precision import in_bfloat16, moved_by_rounding, precision_of
from grpo_core.deviations import DEVIATIONS
from grpo_core.errors import SettingsError
from grpo_core.record import Step
from grpo_core.text import tr

SINGLE = float(np.finfo(np.float32).eps)
AGGREGATION = "multi_objective_aggregation"
"""TRL's setting of how several reward functions become one advantage."""
LOSS_STEPS = 4
"""Roundings of the sum of all |summands| that a loss in float32 may be off by."""
BFLOAT16 = 2.0**-8
"""Relative rounding of a bfloat16 number."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A number of the trainer beside ours.

    Attributes:
        what: "loss", "advantage".
        ours, theirs: the two values.
        allowed: by how much rounding alone may part them.
        passed: index of the pass, None for what belongs to no pass.
        part: micro-batch of the pass, None likewise.
        row: the completion, None for what belongs to no completion.
    """

    what: str
    ours: float
    theirs: float
    allowed: float
    passed: int | None = None
    part: int | None = None
    row: int | None = None

    @property
    def difference(self) -> float:
        """|ours − theirs|; infinite where exactly one of them is no finite number, or they are other infinities."""
        if self.ours == self.theirs or (np.isnan(self.ours) and np.isnan(self.theirs)):
            return 0.0
        return abs(self.ours - self.theirs) if np.isfinite(self.ours) and np.isfinite(self.theirs) else float("inf")

    @property
    def agrees(self) -> bool:
        """Whether rounding explains the difference; it explains none where its own size is not finite."""
        return self.difference == 0.0 or bool(self.difference <= self.allowed < float("inf"))

    @property
    def relative(self) -> float:
        """The difference, relative to the larger value; infinite where it is."""
        if self.difference == 0.0 or np.isinf(self.difference):
            return self.difference
        return self.difference / max(abs(self.ours), abs(self.theirs), 1e-12)

    @property
    def excess(self) -> float:
        """The difference, measured by what rounding allows: above 1 it departs."""
        if self.difference == 0.0:
            return 0.0
        return self.difference / self.allowed if 0.0 < self.allowed < float("inf") else float("inf")

    @property
    def place(self) -> str:
        """Where in the update it stands, counted from 1."""
        if self.row is not None:
            return tr("completion {row}").format(row=self.row + 1)
        return tr("pass {n}, micro-batch {part}").format(n=(self.passed or 0) + 1, part=(self.part or 0) + 1)


def losses(step: Step, theirs: np.ndarray, processes: int) -> list[Comparison]:
    """The loss of each micro-batch; ``theirs`` (N, M) as each of the processes computed it, NaN where not recorded."""
    precision = precision_of(step)
    rounding = BFLOAT16 if in_bfloat16(step) else SINGLE if precision is None else max(SINGLE, precision.relative)
    comparisons = []
    for n in range(step.passes):
        moved = np.zeros(step.part.max() + 1) if precision is None else moved_by_rounding(step, n, precision)
        terms, each = recompute.terms(step, n), recompute.part_losses(step, n)
        summands = np.abs(terms.weight * terms.token_loss)
        if terms.kl is not None:
            summands = summands + np.abs(terms.weight * terms.surrogate)
        for part in np.unique(step.part[n]):
            if part < 0 or np.isnan(theirs[n, part]):
                continue
            rows = step.part[n] == part
            ours = float(each[part]) * processes
            scale = float(summands[rows].sum()) * processes + abs(ours)
            allowed = LOSS_STEPS * rounding * scale + float(moved[part]) * processes + 1e-12
            comparisons.append(
                Comparison(
                    what="loss", ours=ours, theirs=float(theirs[n, part]), passed=n, part=int(part),
                    allowed=allowed if np.isfinite(allowed) else 0.0,  # rounding explains no loss that is not finite
                )
            )  # fmt: skip
    return comparisons


def advantages(step: Step) -> list[Comparison]:
    """The recorded advantage of each completion beside the one that the rewards and the settings give."""
    if step.advantage is None or step.advantage.ndim > 1 or np.isnan(step.rewards).all():
        return []
    if step.settings.recorded.trainer_values.get(AGGREGATION) == "normalize_then_sum":
        return _normalised_then_summed(step)
    objective = step.settings.objective
    try:
        ours = recompute.advantage(dataclasses.replace(step, advantage=None))
    except SettingsError:
        return []
    if ours.ndim > 1:
        return []
    size = float(np.nanmax(np.abs(step.rewards)))
    spread = recompute.grouped(step, step.rewards)
    deviation = np.nanstd(spread, axis=-1, ddof=1) if spread.shape[-1] > 1 else np.zeros(len(spread))
    scaled = deviation[step.group] + objective.std_epsilon if DEVIATIONS[objective.std].divides else 1.0
    # the trainer's rewards are float32: their rounding, divided by the spread
    allowed = 8 * SINGLE * size / scaled + 2e-6 * (1 + np.abs(ours))
    precision = precision_of(step)
    if precision is not None:
        allowed = allowed + precision.half_unit(step.advantage) + 2 * float(precision.half_unit(size)) / scaled
    allowed = np.broadcast_to(allowed, ours.shape)
    return [
        Comparison(what="advantage", ours=float(a), theirs=float(b), allowed=float(c), row=i)
        for i, (a, b, c) in enumerate(zip(ours, step.advantage, allowed, strict=True))
        if not np.isnan(step.rewards[i])
    ]


def _normalised_then_summed(step: Step) -> list[Comparison]:
    """The advantages where each reward function is normalised within its group before they are added (GDPO,
    arXiv:2601.05242, as TRL 1.16 computes it), over one generation batch; empty where the update holds several."""
    assert step.advantage is not None
    size = step.settings.recorded.trainer_values.get("generation_batch_size")
    if step.reward_parts is None or (size is not None and size != len(step.rewards)):
        return []
    parts, epsilon = step.reward_parts, 1e-4
    weights = np.asarray(step.settings.recorded.reward_weights or np.ones(parts.shape[1]), np.float64)
    ours, rounding = np.zeros(len(parts)), np.zeros(len(parts))
    for number, values in enumerate(parts.T):
        table = recompute.grouped(step, values)
        if np.isnan(table).all(axis=-1).any():
            return []
        mean, scale = np.nanmean(table, axis=-1), np.nanstd(table, axis=-1, ddof=1) + epsilon
        ours += np.nan_to_num(weights[number] * (values - mean[step.group]) / scale[step.group])
        rounding += abs(weights[number]) * 8 * SINGLE * np.nanmax(np.abs(values)) / scale[step.group]
    ours[np.isnan(parts).all(axis=1)] = np.nan
    scale = np.nanstd(ours, ddof=1) + epsilon
    ours, allowed = (ours - np.nanmean(ours)) / scale, (rounding.max() + 8 * SINGLE) / scale
    return [
        Comparison(
            what="advantage", ours=float(a), theirs=float(b), allowed=float(allowed + 2e-6 * (1 + abs(a))), row=i
        )
        for i, (a, b) in enumerate(zip(ours, step.advantage, strict=True))
        if not np.isnan(a)
    ]
