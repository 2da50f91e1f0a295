"""Comparison of the trainer's numbers with their recomputation, and the pattern of unexplained deviations: a factor, a
difference, one of both in each group, individual completions, noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from grpo_core.text import plural, tr
from grpo_core.trainers.changes.numbers import Update, of_advantage, of_loss


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A number of the trainer and its recomputation.

    Attributes:
        what: "loss" or "advantage".
        ours, theirs: the recomputed value and the trainer's.
        allowed: maximum difference explained by rounding.
        at: of a loss, the pass and its micro-batch; of an advantage, the group and the completion in the batch.
    """

    what: str
    ours: float
    theirs: float
    allowed: float
    at: tuple[int, int]

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
    def row(self) -> int | None:
        """The completion of an advantage. None for a loss."""
        return self.at[1] if self.what == "advantage" else None

    @property
    def place(self) -> str:
        """Description of the number's location in the update, counted from 1."""
        if self.row is not None:
            return tr("completion {row}").format(row=self.row + 1)
        return tr("pass {n}, micro-batch {part}").format(n=self.at[0] + 1, part=self.at[1] + 1)


def compared(what: str, update: Update) -> list[Comparison]:
    """Compare the "loss" of each micro-batch with the trainer's, or the recorded "advantage" of each completion with
    the one that follows from rewards and settings.
    """
    numbers = of_loss(update) if what == "loss" else of_advantage(update)
    if numbers is None:
        return []
    places = numbers.places.copy()
    if what == "advantage":
        places[:, 0] = update.step.group[places[:, 1]]
    columns = (column.tolist() for column in (numbers.ours, numbers.theirs, numbers.allowed, places))
    return [
        Comparison(what=what, ours=ours, theirs=theirs, allowed=allowed, at=(at[0], at[1]))
        for ours, theirs, allowed, at in zip(*columns, strict=True)
    ]


CONSTANT = 1e-3
"""Relative spread below which a quantity counts as constant."""
LINEAR = 1e-4
"""Maximum deviation from a line, relative to the largest number, at which numbers count as a linear function."""
FEWEST = 6
"""Minimum number of values for naming a pattern."""


def shape(updates: Sequence[Sequence[Comparison]]) -> str:
    """Describe the common pattern of the deviating numbers of all updates in a sentence. Empty if none deviates."""
    compared = [c for each in updates for c in each]
    departing = [c for c in compared if not c.agrees and np.isfinite(c.difference)]
    if not departing:
        return ""
    ours, theirs = (np.array([getattr(c, side) for c in departing]) for side in ("ours", "theirs"))
    off = theirs - ours
    size = plural(
        "{count} of {all} number departs, typically by {typical:.3g} and at most by {largest:.3g}",
        "{count} of {all} numbers depart, typically by {typical:.3g} and at most by {largest:.3g}",
        len(compared),
    ).format(
        count=len(departing), all=len(compared), typical=float(np.median(np.abs(off))), largest=float(np.abs(off).max())
    )
    pattern = _by_group(updates, len(departing)) or _common(departing, compared, ours, off)
    return tr("{size}: {shape}.").format(size=size, shape=pattern)


def _by_group(updates: Sequence[Sequence[Comparison]], departing: int) -> str:
    """Describe deviating advantages that are a linear function of ours in each group, or return an empty string.

    A group is fitted with a factor and an amount, so it needs three different advantages to show the pattern.
    """
    groups: dict[tuple[int, int], list[Comparison]] = {}
    for place, each in enumerate(updates):
        for c in each:
            if c.what == "advantage" and np.isfinite(c.difference):
                groups.setdefault((place, c.at[0]), []).append(c)
    lines = []
    for those in groups.values():
        if all(c.agrees for c in those):
            continue
        ours, theirs, allowed = (np.array([getattr(c, name) for c in those]) for name in ("ours", "theirs", "allowed"))
        if len(np.unique(ours)) < 3:
            continue
        line = np.polyfit(ours, theirs, 1)
        if (np.abs(np.polyval(line, ours) - theirs) > np.maximum(2 * allowed, LINEAR * np.abs(theirs).max())).any():
            return ""
        lines.append(line)
    if departing < FEWEST or not lines:
        return ""
    factors, amounts = np.array(lines).T
    places = {
        "low": float(factors.min()), "high": float(factors.max()),
        "least": float(amounts.min()), "most": float(amounts.max()),
    }  # fmt: skip # pairs
    if np.abs(factors - 1).max() < CONSTANT:
        sentence = tr(
            "in each group all by the same amount, between {least:+.4g} and {most:+.4g}, as if by another baseline"
        )
    elif np.abs(amounts).max() < CONSTANT:
        sentence = tr(
            "in each group all by the same factor, between {low:.4g} and {high:.4g}, as if divided by another number"
        )
    else:
        sentence = tr(
            "in each group theirs are ours times a factor ({low:.4g} to {high:.4g}) plus an amount ({least:+.4g} to "
            "{most:+.4g}), as if by another baseline and divided by another number"
        )
    return sentence.format(**places)


def _common(departing: Sequence[Comparison], compared: Sequence[Comparison], ours: np.ndarray, off: np.ndarray) -> str:
    if len(departing) < FEWEST:
        return tr("too few to see a pattern")
    if (np.abs(ours) > 1e-9).all():
        factors = 1 + off / ours
        middle = float(np.median(factors))
        if np.abs(factors - middle).max() < CONSTANT * max(abs(middle), 1e-9):
            return tr("all by one factor, {factor:.6g}").format(factor=middle)
    middle = float(np.median(off))
    if np.abs(off - middle).max() < CONSTANT * abs(middle):
        return tr("all by one amount, {amount:+.6g}").format(amount=middle)
    rows, every = ({c.row for c in those if c.row is not None} for those in (departing, compared))
    if rows and len(rows) <= max(1, len(every) // 4):
        named = ", ".join(str(row + 1) for row in sorted(rows))
        return tr("always in the same completions ({rows})").format(rows=named)
    error = float(off.std(ddof=1)) / np.sqrt(len(off))
    if abs(float(off.mean())) < 2 * error:
        return tr("in both directions alike, as by noise or by a different order of tokens or completions")
    side = tr("theirs are larger") if off.mean() > 0 else tr("theirs are smaller")
    return tr("{side}, by differing amounts").format(side=side)
