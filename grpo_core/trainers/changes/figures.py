"""The trainer's own metrics of an update, compared with metrics computed from the recorded log-probabilities."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from grpo_core import recompute
from grpo_core.levels import LEVELS
from grpo_core.trainers.changes.numbers import Update

LENGTH = "completions/mean_length"
"""TRL's name for the mean number of tokens of an update's completions."""
KL, ENTROPY, CLIPPED = "kl", "entropy", "clip_ratio/region_mean"
"""TRL's names for means over the tokens of a micro-batch and over the micro-batches of an optimizer step.

Where a ratio is of a completion, the share of clipped ones is a mean over completions.
"""
REWARD = "reward"
"""TRL's name for the mean reward of the completions, in the report on the first step that uses them."""
SAME = 1e-3
"""Maximum relative difference between equal metrics, which are averaged and printed in float32."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One metric.

    Attributes:
        name: TRL's name.
        step: the trainer's number for the step.
        first: whether it belongs to the first optimizer step of an update, in which every ratio is 1.
        ours, theirs: the recomputed value and the trainer's.
    """

    name: str
    step: int
    first: bool
    ours: float
    theirs: float

    @property
    def agrees(self) -> bool:
        return abs(self.ours - self.theirs) <= SAME * max(abs(self.ours), abs(self.theirs)) + 1e-5


def figures(update: Update) -> Iterator[Figure]:
    """Yield the metrics that the trainer reported for each optimizer step of ``update``.

    Yields nothing if the trainer averaged over several steps or over processes.
    """
    step = update.step
    if update.processes > 1 or step.settings.recorded.trainer_values.get("logging_steps") != 1:
        return
    if step.optimizer_step is None or len(np.unique(step.optimizer_step)) != step.passes:
        return
    of_completion = LEVELS[step.settings.objective.level].of_completion
    for n in range(step.passes):
        number = (step.label or 0) - step.passes + 1 + n
        theirs = update.reports.get(number, {})
        terms = recompute.terms(step, n)
        known = {KL: terms.kl, ENTROPY: recompute.measured_entropy(step, n), CLIPPED: terms.clipped}
        for name, values in known.items():
            if values is not None and name in theirs:
                yield Figure(
                    name=name,
                    step=number,
                    first=n == 0,
                    ours=_mean(step.part[n], step.mask, values, by_row=name == CLIPPED and of_completion),
                    theirs=theirs[name],
                )
        if n == 0 and REWARD in theirs and np.isfinite(step.rewards).any():
            ours = float(np.nanmean(step.rewards))
            yield Figure(name=REWARD, step=number, first=True, ours=ours, theirs=theirs[REWARD])


def _mean(part: np.ndarray, mask: np.ndarray, values: np.ndarray, *, by_row: bool) -> float:
    """Return the mean over the micro-batches of the mean over their tokens, or ``by_row`` over their completions."""
    means = []
    if by_row:
        values, mask = (values & mask).any(axis=1, keepdims=True), np.ones((len(mask), 1), bool)
    for m in np.unique(part[part >= 0]):
        counted = mask & (part == m)[:, None]
        means.append(float(values[counted].mean()) if counted.any() else 0.0)
    return float(np.mean(means))


def added_length(update: Update) -> float | None:
    """Return by how much the trainer's mean number of tokens per completion exceeds the recorded one.

    None if the trainer did not report it, or if some tokens do not count.
    """
    lengths = [numbers[LENGTH] for numbers in update.reports.values() if LENGTH in numbers]
    if not lengths or update.step.present is not None or update.theirs is None:
        return None
    return float(np.mean(lengths)) - float(update.step.there.sum(axis=1).mean())


def clipped_at_first(shown: Sequence[Figure]) -> tuple[int, int, float]:
    """Compare clipping in those first passes in which the recorded log-probabilities make every ratio 1.

    Returns the number of these passes, the number of those in which the trainer clipped, and the mean share of clipped
    tokens.
    """
    still = [f.theirs for f in shown if f.name == CLIPPED and f.first and f.ours == 0.0]
    return len(still), sum(share > 0.0 for share in still), float(np.mean(still)) if still else 0.0
