"""Evidence about tensors that a loss takes as given: whose log-probabilities they are, and which tokens count.

Even if a loss follows from recorded log-probabilities, these may not belong to their tokens. Other numbers show whether
they do: before the first optimizer step, old and new log-probabilities come from the same policy; two completions of
one prompt have the same log-probabilities as long as their tokens are the same; the mean of −log π of sampled tokens is
the entropy; the trainer's own metrics follow from the record.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from grpo_core import recompute
from grpo_core.levels import LEVELS
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


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A metric that the trainer reported, compared with the one that follows from the recorded log-probabilities.

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
