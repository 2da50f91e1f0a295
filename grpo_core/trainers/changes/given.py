"""Evidence about tensors that a loss takes as given: whose log-probabilities they are, and which tokens count.

Even if a loss follows from recorded log-probabilities, these may not belong to their tokens. Other numbers show whether
they do: before the first optimizer step, old and new log-probabilities come from the same policy; two completions of
one prompt have the same log-probabilities as long as their tokens are the same; the mean of −log π of sampled tokens is
the entropy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from grpo_core.record import Step
from grpo_core.trainers.changes.change import fitting, known
from grpo_core.trainers.changes.numbers import Update

RECORDED = "recorded"
EQUAL, APART = 1e-4, 1e-2
"""Maximum difference of equal log-probabilities, and minimum difference of different ones."""
SURE = 0.05
"""Minimum magnitude of a log-probability that can show whether values are shifted or missing.

A token below it was almost certain, and its log-probability is about 0 in any case.
"""
PARTNERS = 7
"""Number of other completions of its group with which each completion is compared."""


@dataclass(frozen=True, kw_only=True)
class Sums:
    """Sums over pairs of numbers (x, y): their count, and sums of x, y, x², x y and y²."""

    count: int = 0
    x: float = 0.0
    y: float = 0.0
    xx: float = 0.0
    xy: float = 0.0
    yy: float = 0.0

    @classmethod
    def of(cls, x: np.ndarray, y: np.ndarray) -> Sums:
        """Return the sums over the pairs in which both numbers are finite."""
        both = np.isfinite(x) & np.isfinite(y)
        x, y = x[both].astype(np.float64), y[both].astype(np.float64)
        return cls(count=len(x), x=float(x.sum()), y=float(y.sum()), xx=float(x @ x), xy=float(x @ y), yy=float(y @ y))

    def __add__(self, other: Sums) -> Sums:
        return Sums(**{name: getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__})

    @property
    def distance(self) -> float:
        """Root mean square of y − x. Infinite without pairs."""
        return float(np.sqrt(max(self.xx - 2 * self.xy + self.yy, 0.0) / self.count)) if self.count else np.inf

    @property
    def spread(self) -> tuple[float, float, float]:
        """Variance of x, covariance, and variance of y. 0 without pairs."""
        n = max(self.count, 1)
        mean_x, mean_y = self.x / n, self.y / n
        return self.xx / n - mean_x**2, self.xy / n - mean_x * mean_y, self.yy / n - mean_y**2

    @property
    def slope(self) -> float:
        """Slope of y against x. NaN if x does not vary."""
        var, cov, _ = self.spread
        return cov / var if var > 0 else np.nan

    @property
    def correlation(self) -> float:
        """Correlation of x and y. NaN if either does not vary."""
        var, cov, other = self.spread
        return float(cov / np.sqrt(var * other)) if var > 0 and other > 0 else np.nan


def first_pass(step: Step) -> tuple[np.ndarray, np.ndarray]:
    """Return the log-probabilities before the first optimizer step, and the tokens that it used, (B, T) each."""
    same = np.zeros(step.passes, bool)
    same[0] = True
    if step.optimizer_step is not None:
        same = step.optimizer_step == step.optimizer_step[0]
    logp, used = np.zeros(step.mask.shape), np.zeros(step.mask.shape, bool)
    for n in np.flatnonzero(same)[::-1]:
        here = step.mask & (step.part[n] >= 0)[:, None]
        logp, used = np.where(here, step.logp[n], logp), used | here
    return logp, used


def alignments(update: Update, name: str) -> Mapping[str, Sums]:
    """Compare log-probabilities of the first pass (x) with ``old_logp`` or ``ref_logp`` (y) in several alignments.

    The alignments are: as recorded, shifted by one position to the right or left, and as if they belonged to the
    previous update. The result is empty if ``name`` is not recorded, or holds the first pass's own log-probabilities.
    """
    values = getattr(update.step, name)
    if values is None:
        return {}
    logp, used = first_pass(update.step)
    if np.array_equal(values[used], logp[used]):
        return {RECORDED: Sums(count=int(used.sum()))}
    inner = used[:, 1:] & used[:, :-1]
    found = {
        RECORDED: Sums.of(logp[used], values[used]),
        "right": Sums.of(logp[:, :-1][inner], values[:, 1:][inner]),
        "left": Sums.of(logp[:, 1:][inner], values[:, :-1][inner]),
    }
    if update.previous is not None:
        earlier, there = first_pass(update.previous)
        before, counted = fitting(known(earlier, there), values), fitting(there, used)
        if before is not None and counted is not None:
            found["stale"] = Sums.of(before[used & counted], values[used & counted])
    return found


def zeros(step: Step, name: str) -> tuple[int, int]:
    """Count the tokens about which the first pass was not certain.

    Returns how many of them have a log-probability of exactly 0 in ``name``, and their total number.
    """
    values, (logp, used) = getattr(step, name), first_pass(step)
    unsure = used & (np.abs(logp) > SURE)
    return int((unsure & (values == 0)).sum()), int(unsure.sum())


@dataclass(frozen=True, kw_only=True)
class Prefixes:
    """Pairs of completions of a prompt whose first c ≥ 1 tokens are equal and whose next tokens differ.

    Attributes:
        after: number of pairs with the same log-probability of the first differing token.
        before: number of pairs with different log-probabilities of the last equal token.
        longer, earlier: number of pairs with c ≥ 2, and of those with equal log-probabilities of the token before that.
    """

    pairs: int = 0
    after: int = 0
    before: int = 0
    longer: int = 0
    earlier: int = 0

    def __add__(self, other: Prefixes) -> Prefixes:
        return Prefixes(**{name: getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__})

    @property
    def shift(self) -> str:
        """The direction in which all log-probabilities are shifted relative to their tokens, "right" or "left".

        Empty if they are aligned, or if there are too few pairs.
        """
        if self.pairs < 5:
            return ""
        if self.after >= 0.9 * self.pairs:
            return "right"
        shown = self.longer >= 3 and self.earlier >= 0.9 * self.longer
        return "left" if shown and self.before >= 0.9 * self.pairs and self.after <= 0.2 * self.pairs else ""


def prefixes(step: Step) -> Prefixes:
    """Count what completions with equal beginnings indicate about the alignment of log-probabilities."""
    logp, used = first_pass(step)
    order = np.argsort(step.group, kind="stable")
    total = Prefixes()
    for apart in range(1, min(PARTNERS, len(order) - 1) + 1):
        one, other = order[:-apart], order[apart:]
        pairs = step.group[one] == step.group[other]
        one, other = one[pairs], other[pairs]
        both = used[one] & used[other]
        same = (step.tokens[one] == step.tokens[other]) & both
        c = np.cumprod(same, axis=1).sum(axis=1)
        fits = (c >= 1) & (c < same.shape[1])
        one, other, c = one[fits], other[fits], c[fits]
        rows = np.arange(len(c))
        fits = both[fits][rows, c]
        one, other, c = one[fits], other[fits], c[fits]
        gap, size = np.abs(logp[one] - logp[other]), np.abs(logp[one])
        rows, longer = np.arange(len(c)), c >= 2
        total += Prefixes(
            pairs=len(c),
            after=int(((gap < EQUAL) & (size > SURE))[rows, c].sum()),
            before=int((gap > APART)[rows, c - 1].sum()),
            longer=int(longer.sum()),
            earlier=int((gap < EQUAL)[rows[longer], c[longer] - 2].sum()),
        )
    return total


def surprise(step: Step) -> Sums:
    """Compare entropy (x) with −log π of the sampled token (y) over the tokens of the first pass.

    Their means are equal if the scored policy is the one that sampled.
    """
    if step.entropy is None:
        return Sums()
    logp, used = first_pass(step)
    return Sums.of(step.entropy[0][used], -logp[used])


def without_first(step: Step) -> bool:
    """Return whether only the first token of every completion is excluded from the loss.

    A first token that the model did not choose is rightly excluded: one that the source says another wrote, or one with
    which every completion of a prompt begins.
    """
    rows = step.mask.any(axis=1)
    if step.mask.shape[1] < 2 or not rows.any() or (step.written is not None and not step.written[rows, 0].any()):
        return False
    _, first, of_group = np.unique(step.group[rows], return_index=True, return_inverse=True)
    begins, there, counts = step.tokens[rows, 0], step.there[rows], step.mask[rows]
    chosen = (begins != begins[first][of_group]).any()
    return bool(chosen and there[:, 0].all() and not counts[:, 0].any() and (counts[:, 1] == there[:, 1]).all())
