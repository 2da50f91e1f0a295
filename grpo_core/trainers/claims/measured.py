"""The claim of a check that found nothing: the range of its measure. It is checked against the measured values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from grpo_core.claims.claim import Claim
from grpo_core.text import tr
from grpo_core.typeset import plain

Course = Sequence[tuple[int, float]]
"""The trainer's number for each update and the measured value, in order."""


@dataclass(frozen=True, kw_only=True)
class Measured(Claim[Course]):
    """Claims that ``quantity`` is between ``low`` and ``high`` in all ``count`` updates.

    ``high`` is first reached at step ``where``. ``share``: whether the quantity is a share.
    """

    quantity: str
    share: bool
    low: float
    high: float
    where: int
    count: int

    @classmethod
    def of(cls, quantity: str, share: bool, course: Course) -> Self | None:
        """Return the claim about the range of measured values. None if there are none."""
        if not course:
            return None
        low, high = (end(value for _, value in course) for end in (min, max))
        where = next(label for label, value in course if value == high)
        return cls(quantity=quantity, share=share, low=low, high=high, where=where, count=len(course))

    def check(self, data: Course) -> bool:
        return self == self.of(self.quantity, self.share, data)

    def words(self) -> str:
        say = _percent if self.share else plain
        facts = {"what": self.quantity, "low": say(self.low), "high": say(self.high), "step": self.where}
        if facts["low"] == facts["high"]:
            return tr("{what}: {high}").format(**facts)
        return tr("{what}: {low} to {high}, most in step {step}").format(**facts)


def _percent(share: float) -> str:
    if 0 < share < 0.001:
        return tr("below 0.1%")
    return f"{share:.0%}" if share >= 0.1 or not share else f"{share:.1%}"
