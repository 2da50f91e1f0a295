"""The trainer's own figures of an update beside those that the recorded log-probabilities give."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from grpo_core import recompute
from grpo_core.changes.numbers import Update
from grpo_core.runs.importers.source import Report

KL, ENTROPY, CLIPPED = "kl", "entropy", "clip_ratio/region_mean"
"""TRL's names: means over the tokens of a micro-batch, and over the micro-batches of an optimizer step."""
SAME = 1e-3
"""Relative difference of figures that are the same: they are averaged and printed in float32."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One figure.

    Attributes:
        name: TRL's.
        step: the trainer's number.
        first: whether it belongs to the first optimizer step of an update, where every ratio is 1.
        ours, theirs: its values.
    """

    name: str
    step: int
    first: bool
    ours: float
    theirs: float

    @property
    def agrees(self) -> bool:
        """Whether the two are the same figure."""
        return abs(self.ours - self.theirs) <= SAME * max(abs(self.ours), abs(self.theirs)) + 1e-5


def figures(update: Update, label: int, reports: Sequence[Report]) -> Iterator[Figure]:
    """The figures that the trainer reported of each optimizer step of ``update``, whose last one is ``label``; none
    where it averaged over several of them, or over processes."""
    step = update.step
    if update.processes > 1 or step.settings.recorded.trainer_values.get("logging_steps") != 1:
        return
    if step.optimizer_step is None or len(np.unique(step.optimizer_step)) != step.passes:
        return
    of_step = {report.step: report.numbers for report in reports}
    for n in range(step.passes):
        number = label - step.passes + 1 + n
        theirs = of_step.get(number, {})
        terms = recompute.terms(step, n)
        known = {KL: terms.kl, ENTROPY: recompute.measured_entropy(step, n), CLIPPED: terms.clipped}
        for name, values in known.items():
            if values is not None and name in theirs:
                yield Figure(
                    name=name, step=number, first=n == 0, ours=_mean(step.part[n], step.mask, values),
                    theirs=theirs[name],
                )  # fmt: skip


def _mean(part: np.ndarray, mask: np.ndarray, values: np.ndarray) -> float:
    """The mean over the micro-batches of the mean over their tokens."""
    means = []
    for m in np.unique(part[part >= 0]):
        counted = mask & (part == m)[:, None]
        means.append(float(values[counted].mean()) if counted.any() else 0.0)
    return float(np.mean(means))
