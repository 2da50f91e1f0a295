"""The claim about a clip without effect that says which range would have one. It is checked against the update."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from grpo_core import recompute
from grpo_core.claims.claim import Claim
from grpo_core.record import Step
from grpo_core.surrogates import SURROGATES, Ratio
from grpo_core.text import tr

JUST, FARTHER = 1e-6, 0.015
"""Tolerances of a check of a claimed bound, as shares of its distance from 1.

A range that is narrower than the bound by ``JUST`` must clip a ratio, and one wider by ``FARTHER`` must not. The latter
allows for rounding the distance to three digits.
"""
NEXT_TO_ONE, ULPS = 1e-12, 4
"""Distance from 1 below which a ratio counts as 1, and how far rounding moves numbers next to 1, in their precision."""


@dataclass(frozen=True, kw_only=True)
class WouldAct(Claim[Step]):
    """Claims that the clip has no effect in pass ``passed`` (0 = the first), but would have one with a narrower range.

    The range would have to end below ``high``, or begin above ``low``; each is None if no such bound exists. ``cap``:
    the clip limits a weight and only has an upper bound.
    """

    passed: int
    high: float | None = None
    low: float | None = None
    cap: bool = False

    def check(self, data: Step) -> bool:
        if acts(data, self.passed) or (self.high is None and self.low is None):
            return False
        return self._end(data, "high") and (self.cap or self._end(data, "low"))

    def _end(self, data: Step, end: str) -> bool:
        """Return whether a range slightly narrower than the bound at ``end`` has an effect, and a wider one has none.

        Without a bound, return whether no range has an effect, however narrow.
        """
        bound = self.high if end == "high" else self.low
        if bound is None:
            return not acts(data, self.passed, **{end: 1.0 + NEXT_TO_ONE * (1 if end == "high" else -1)})
        away = abs(bound - 1) or JUST
        just = JUST * away + ULPS * float(np.finfo(data.logp.dtype).eps)
        inside = bound - just if end == "high" else bound + just
        outside = bound + FARTHER * away if end == "high" else bound - FARTHER * away
        return acts(data, self.passed, **{end: inside}) and not acts(data, self.passed, **{end: outside})

    def words(self) -> str:
        high, low = (None if bound is None else f"{bound:.12g}" for bound in (self.high, self.low))
        if self.cap:
            return tr("A cap below {high} would act.").format(high=high)
        if high and low:
            return tr("A range that ended below {high}, or began above {low}, would make the clip act.").format(
                high=high, low=low
            )
        if high:
            return tr("A range that ended below {high} would make the clip act.").format(high=high)
        return tr("A range that began above {low} would make the clip act.").format(low=low)


def acts(step: Step, passed: int, *, high: float | None = None, low: float | None = None) -> bool:
    """Return whether the clip affects a token of the pass if its range ends at ``high`` or begins at ``low``."""
    objective = step.settings.objective
    surrogate = SURROGATES[objective.surrogate]
    assert surrogate.clip is not None
    logs, caps = surrogate.ratio is Ratio.OWN, surrogate.clip.cuts_weight  # meaning of the range's fields
    if high is not None:
        end = high if caps else math.log(high) if logs else high - 1
        objective = objective.replace(clip_high=max(end, 0.0))
    if low is not None:
        objective = objective.replace(clip_low=max(-math.log(low) if logs else 1 - low, 0.0))
    clipped = recompute.terms(recompute.under(step, step.settings.replace({"objective": objective})), passed).clipped
    return bool(np.any(clipped & recompute.used(step, passed)))
