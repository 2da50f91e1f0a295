"""Claims about a change of one setting that was tried on an update and those after it, with the same random numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from grpo_core.claims.claim import Derived
from grpo_core.text import plural

LEAST = 0.1
"""Smallest effect that is reported, as a share of the measure's distance to its limit."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Trial:
    """A measure over the same updates with and without the change of a setting.

    Attributes:
        kept, changed: (U,), the measure after each update, without and with the change.
        limit: the value beyond which the measure is unhealthy: above it, or below it if ``low`` is set.
        setting: name of the setting, with its old and its new value.
        share: whether the measure is a share of a total.
    """

    kept: np.ndarray
    changed: np.ndarray
    limit: float
    low: bool
    setting: str
    measure: str
    share: bool

    @property
    def effect(self) -> float:
        """The improvement of the mean, as a part of the first update's distance to the limit. 0 if it is unknown."""
        away = abs(float(self.kept[0]) - self.limit)
        gained = float(self.kept.mean() - self.changed.mean()) * (-1 if self.low else 1)
        return gained / away if np.isfinite(gained) and away else 0.0


@dataclass(frozen=True, kw_only=True)
class Tried(Derived[Trial]):
    """Claims that a change of ``setting`` improves the mean of ``measure`` from ``kept`` to ``changed``.

    The mean is over ``updates`` updates. ``share``: whether the numbers are shares of a total. There is no claim if the
    effect is smaller than :data:`LEAST`.
    """

    setting: str
    measure: str
    kept: float
    changed: float
    updates: int
    share: bool

    @classmethod
    def found_in(cls, data: Trial) -> Self | None:
        if not data.effect >= LEAST:
            return None
        kept, changed = float(data.kept.mean()), float(data.changed.mean())
        names = {"setting": data.setting, "measure": data.measure}
        return cls(**names, kept=kept, changed=changed, updates=len(data.kept), share=data.share)

    def words(self) -> str:
        pattern = plural(
            "{setting}, tried over {updates} update: {measure} {kept} → {changed}.",
            "{setting}, tried over {updates} updates: {measure} {kept} → {changed}.",
            self.updates,
        )
        kept, changed = (f"{100 * x:.0f}%" if self.share else f"{x:.3g}" for x in (self.kept, self.changed))
        return self.filled(pattern, kept=kept, changed=changed)
