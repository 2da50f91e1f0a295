"""The claim, for a film's caption, about the advantages that follow from the rewards."""

from __future__ import annotations

import numpy as np

from grpo_core.advantages import equal_rewards
from grpo_core.baselines import BASELINES
from grpo_core.claims.captions import Caption
from grpo_core.evaluated_step import EvaluatedStep
from grpo_core.text import tr


def normalized(n: EvaluatedStep, rows: np.ndarray, gained: np.ndarray, total: float | None = None) -> Caption | None:
    """Return the claim about the advantages ``gained`` (n,) of draws in the completions ``rows`` (n,).

    ``total`` is the sum of the advantages, which is stated if they differ. None if no advantage is known.
    """
    known = gained[np.isfinite(gained)]
    if not len(known):
        return None
    low, high = float(known.min()), float(known.max())
    if low == high == 0:
        paid, groups = n.step.rewards[rows], np.unique(n.step.group[rows])
        compared = BASELINES[n.objective.baseline].within_group and n.step.advantage is None
        alike = len(np.unique(rows)) > 1 and not np.isnan(paid).any() and bool(equal_rewards(paid[None])[0])
        return Caption.of("silent_alike" if compared and alike and n.dead[groups].all() else "silent")
    if high - low <= 1e-12 * max(abs(low), abs(high)):
        return Caption.of("all_alike", low=low)
    if total is None:
        return Caption.of("ranged", low=low, high=high)
    return Caption.of("ranged_sum", low=low, high=high, total=total)


def normalized_words(made: Caption | None) -> str:
    """Return the sentence about the advantages that follow from the rewards."""
    return tr("Normalize: rewards become advantages.") if made is None else made.words()
