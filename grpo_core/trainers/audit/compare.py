"""Comparison of one number of the trainer with its recomputation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from grpo_core.text import tr
from grpo_core.trainers.changes.numbers import Numbers, Update, of_advantage, of_loss


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A number of the trainer and its recomputation.

    Attributes:
        what: "loss" or "advantage".
        ours, theirs: the recomputed value and the trainer's.
        allowed: maximum difference explained by rounding.
        passed: index of the pass, or None if not applicable.
        part: micro-batch of the pass, or None if not applicable.
        row, group: the completion and its group, or None if not applicable.
    """

    what: str
    ours: float
    theirs: float
    allowed: float
    passed: int | None = None
    part: int | None = None
    row: int | None = None
    group: int | None = None

    @property
    def difference(self) -> float:
        """|ours − theirs|. Infinite if exactly one of them is not finite, or they are different infinities."""
        if self.ours == self.theirs or (np.isnan(self.ours) and np.isnan(self.theirs)):
            return 0.0
        return abs(self.ours - self.theirs) if np.isfinite(self.ours) and np.isfinite(self.theirs) else float("inf")

    @property
    def agrees(self) -> bool:
        """Whether rounding explains the difference. False if the allowed difference is not finite."""
        return self.difference == 0.0 or bool(self.difference <= self.allowed < float("inf"))

    @property
    def relative(self) -> float:
        """The difference, relative to the larger value. Infinite if the difference is infinite."""
        if self.difference == 0.0 or np.isinf(self.difference):
            return self.difference
        return self.difference / max(abs(self.ours), abs(self.theirs), 1e-12)

    @property
    def excess(self) -> float:
        """The difference, relative to the rounding tolerance. If it exceeds 1, the numbers deviate."""
        if self.difference == 0.0:
            return 0.0
        return self.difference / self.allowed if 0.0 < self.allowed < float("inf") else float("inf")

    @property
    def place(self) -> str:
        """Description of the number's location in the update, counted from 1."""
        if self.row is not None:
            return tr("completion {row}").format(row=self.row + 1)
        return tr("pass {n}, micro-batch {part}").format(n=(self.passed or 0) + 1, part=(self.part or 0) + 1)


def losses(update: Update) -> list[Comparison]:
    """Compare the loss of each micro-batch with the trainer's."""
    return [
        Comparison(what="loss", passed=passed, part=part, **numbers)
        for (passed, part), numbers in _rows(of_loss(update))
    ]


def advantages(update: Update) -> list[Comparison]:
    """Compare the recorded advantage of each completion with the one that follows from rewards and settings."""
    return [
        Comparison(what="advantage", row=row, group=int(update.step.group[row]), **numbers)
        for (_, row), numbers in _rows(of_advantage(update))
    ]


def _rows(numbers: Numbers | None) -> Iterator[tuple[tuple[int, int], dict[str, Any]]]:
    """Yield the place of each number, and the number as fields of a comparison."""
    if numbers is not None:
        columns = {name: getattr(numbers, name).tolist() for name in ("ours", "theirs", "allowed")}
        for n, (first, second) in enumerate(numbers.places.tolist()):
            yield (first, second), {name: values[n] for name, values in columns.items()}
