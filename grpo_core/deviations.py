"""Deviations, by which the centred reward is divided: σ in A = (R − b) / (σ + δ).

The group's standard deviation is DeepSeekMath's (arXiv:2402.03300, section 4.1.2, which names no degrees of freedom);
to divide by nothing is Dr. GRPO's (arXiv:2503.20783); the batch's is an option of TRL 1.16 (scale_rewards "batch").
"""

from __future__ import annotations

from dataclasses import dataclass

from grpo_core.baselines import DEEPSEEKMATH
from grpo_core.text import tr


@dataclass(frozen=True, kw_only=True)
class Deviation:
    """One thing to divide by.

    Attributes:
        ddof: what is taken from n below the root's sum of squares.
        of_batch: it is that of all rewards of the batch, otherwise of each group.
        divides: whether there is anything to divide by.
        inline: it in letters, for one line of a formula; empty where nothing is divided by.
        phrase: the division as part of a sentence.
        in_training: that a trainer divided by it, as a sentence.
        source: who divides by it.
        knobs: fields of the objective that act with it.
    """

    ddof: int = 1
    of_batch: bool = False
    divides: bool = True
    inline: str = ""
    phrase: str
    in_training: str
    source: str
    knobs: tuple[str, ...] = ("std_epsilon",)


DEVIATIONS: dict[str, Deviation] = {
    "sample": Deviation(
        inline=r"\sigma",
        phrase=tr("divide by its standard deviation (n − 1)"),
        in_training=tr("The standard deviation was that of the group with n − 1."),
        source=DEEPSEEKMATH,
    ),
    "population": Deviation(
        ddof=0,
        inline=r"\sigma_{n}",
        phrase=tr("divide by its standard deviation (n)"),
        in_training=tr("The standard deviation was that of the group with n."),
        source=DEEPSEEKMATH,
    ),
    "batch": Deviation(
        of_batch=True,
        inline=r"\sigma_{B}",
        phrase=tr("divide by the batch's standard deviation"),
        in_training=tr("The standard deviation was that of the whole batch."),
        source=tr("TRL 1.16, scale_rewards “batch”"),
    ),
    "none": Deviation(
        divides=False,
        phrase=tr("divide by nothing"),
        in_training=tr("Advantages were not divided by a standard deviation."),
        source="Dr. GRPO, arXiv:2503.20783",
        knobs=(),
    ),
}
"""Every choice by its name in the settings."""
