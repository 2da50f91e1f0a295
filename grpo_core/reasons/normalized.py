"""What the rewards of some draws became: the condition under which a caption says it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from grpo_core.advantages import equal_rewards
from grpo_core.baselines import BASELINES
from grpo_core.evaluated_step import EvaluatedStep


@dataclass(frozen=True, kw_only=True)
class Normalized:
    """The advantages of some draws.

    Attributes:
        low, high: the smallest and the largest that is known; None where none is.
        equal: two draws or more were paid, all the same, and that is why each advantage is 0.
    """

    low: float | None
    high: float | None
    equal: bool

    @property
    def silent(self) -> bool:
        """Whether every advantage is known to be 0."""
        return self.low == 0 == self.high


def normalized(n: EvaluatedStep, rows: np.ndarray, gained: np.ndarray) -> Normalized:
    """The advantages ``gained`` (n,) of draws in the completions ``rows`` (n,), with the rewards they were made of."""
    known = gained[np.isfinite(gained)]
    paid, groups = n.step.rewards[rows], np.unique(n.step.group[rows])
    compared = BASELINES[n.objective.baseline].within_group and n.step.advantage is None
    alike = len(np.unique(rows)) > 1 and not np.isnan(paid).any() and bool(equal_rewards(paid[None])[0])
    return Normalized(
        low=float(known.min()) if len(known) else None,
        high=float(known.max()) if len(known) else None,
        equal=bool(compared and alike and n.dead[groups].all() and len(known) == len(gained) and not known.any()),
    )
