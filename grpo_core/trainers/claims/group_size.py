"""A claim about larger groups: the share of groups whose completions would differ in reward.

The distribution of the prompts' success rates is that which makes the observed rewards most likely (nonparametric
maximum likelihood, after Laird 1978, by expectation maximisation over a grid of rates). No shape of it is assumed: many
prompts may be hopeless.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from grpo_core.claims.claim import Claim, same
from grpo_core.text import tr
from grpo_core.trainers.claims.findings import NEAR, Run, later

RATES = np.concatenate(
    [[0.0], ends := np.geomspace(1e-3, 0.03, 12), np.linspace(0.04, 0.96, 47), 1 - ends[::-1], [1.0]]
)
"""Grid of success rates, finer near 0 and 1."""
ROUNDS, RESAMPLES = 300, 100
"""Rounds of the expectation maximisation, and number of resamples of the groups that give the interval."""
WITHIN = 0.9
"""Share of the resamples within an interval."""
TIMES = (2, 4)
"""Factors by which the groups would be larger."""


Pattern = tuple[float, float, int, int]
"""The lowest and the highest reward of a group, and its number of completions with the highest, and of all."""


def pattern(rewards: np.ndarray) -> Pattern | None:
    """Summarise the rewards of a group. None if they have more than two values."""
    low, high = float(rewards.min()), float(rewards.max())
    top = np.abs(rewards - high) <= NEAR * max(1.0, abs(low), abs(high))
    two = bool((top | (np.abs(rewards - low) <= NEAR * max(1.0, abs(low), abs(high)))).all())
    return (low, high, int(top.sum()), len(rewards)) if two else None


def successes(patterns: Sequence[Pattern | None]) -> list[tuple[int, int]]:
    """Return the number of completions with the highest reward, and of all completions, of each group.

    Empty if the groups' rewards together do not have exactly two values.
    """
    known = [one for one in patterns if one is not None]
    ends = np.array([one[:2] for one in known]).reshape(-1, 2)
    if len(known) < len(patterns) or not len(known) or ends.min() == ends.max():
        return []
    low, high = float(ends.min()), float(ends.max())
    near = NEAR * max(1.0, abs(low), abs(high))
    if not ((ends <= low + near) | (ends >= high - near)).all():
        return []
    return [(k if most >= high - near else 0, n) for _, most, k, n in known]


def expected_live(counts: Sequence[tuple[int, int]], size: int) -> tuple[float, float, float]:
    """Estimate the share of groups of ``size`` completions with different rewards.

    Args:
        counts: number of successes and number of completions of each observed group; the latter is the same for all.

    Returns:
        The estimate, and the ends of the interval that contains it in 90 % of resamples of the groups.
    """
    n = counts[0][1]
    observed = np.bincount([k for k, _ in counts], minlength=n + 1)
    drawn = np.random.default_rng(0).multinomial(len(counts), observed / len(counts), size=RESAMPLES)
    those, k = np.vstack([observed, drawn]), np.arange(n + 1)[:, None]
    likely = np.array([math.comb(n, i) for i in range(n + 1)])[:, None] * RATES**k * (1 - RATES) ** (n - k)
    weights = np.full((len(those), len(RATES)), 1 / len(RATES))
    for _ in range(ROUNDS):
        weights *= (those / np.maximum(weights @ likely.T, np.finfo(float).tiny)) @ likely / len(counts)
    live = weights @ (1 - RATES**size - (1 - RATES) ** size)
    low, high = np.quantile(live[1:], [(1 - WITHIN) / 2, (1 + WITHIN) / 2])
    return float(live[0]), float(low), float(high)


@dataclass(frozen=True, kw_only=True)
class LargerGroups(Claim[Run]):
    """Claims how many groups would have different rewards if they were larger, as estimated from update ``since`` on.

    Attributes:
        since: the trainer's number for the first update.
        live: share of the groups whose rewards differ.
        expected: share, and ends of its interval, for each of ``TIMES``.
    """

    since: int
    size: int
    live: float
    expected: tuple[tuple[float, float, float], ...]

    @classmethod
    def of(cls, patterns: Sequence[Pattern | None], since: int) -> LargerGroups | None:
        """Return the claim about groups with these patterns.

        None if their rewards do not have exactly two values, or if they have different sizes.
        """
        counts = successes(patterns)
        sizes = {n for _, n in counts}
        if len(sizes) != 1:
            return None
        (size,) = sizes
        return cls(
            since=since,
            size=size,
            live=sum(0 < k < n for k, n in counts) / len(counts),
            expected=tuple(expected_live(counts, size * times) for times in TIMES),
        )

    def check(self, data: Run) -> bool:
        updates = later(data, self.since)
        patterns = [pattern(np.asarray(update.rewards)[rows]) for update in updates for rows in update.groups]
        other = LargerGroups.of(patterns, self.since)
        return other is not None and same(tuple(vars(self).values()), tuple(vars(other).values()))

    def words(self) -> str:
        (twice, low, high), (four, lower, higher) = self.expected
        return tr(
            "Rewards differ in {live:.0%} of these groups of {size}. Estimate for prompts of the same difficulty: "
            "{twice:.0%} of groups of {double} ({low:.0%} to {high:.0%}), {four:.0%} of groups of {fourfold} "
            "({lower:.0%} to {higher:.0%})."
        ).format(
            live=self.live, size=self.size, double=2 * self.size, fourfold=4 * self.size,
            twice=twice, low=low, high=high, four=four, lower=lower, higher=higher,
        )  # fmt: skip # one line for each part of the sentence
