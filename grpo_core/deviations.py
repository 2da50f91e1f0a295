"""Divisors of the centred reward: σ in A = (R − b) / (σ + δ).

The group's standard deviation is DeepSeekMath's (arXiv:2402.03300, section 4.1.2, which does not specify the degrees of
freedom); no division is Dr. GRPO's (arXiv:2503.20783); the batch's standard deviation is an option of TRL 1.16
(scale_rewards "batch"); the group's mean reward is MaxRL's (arXiv:2602.02710); the deviation of what is left after the
baseline is that of REINFORCE++ with a baseline (arXiv:2501.03262).
"""

from __future__ import annotations

from dataclasses import dataclass

from grpo_core.baselines import DEEPSEEKMATH
from grpo_core.text import tr


@dataclass(frozen=True, kw_only=True)
class Deviation:
    """A divisor of centred rewards.

    Attributes:
        ddof: the degrees of freedom subtracted from n in the variance.
        of_batch: whether it is computed over all rewards of the batch rather than over each group.
        of_centred: whether it is computed over the centred rewards, so that differences between prompts do not count.
        of_mean: whether it is the mean of the group's rewards instead of a deviation; if that is not above 0, 1.
        divides: whether anything is divided at all.
        inline: its symbol in a one-line formula; empty if nothing is divided.
        phrase: the division as part of a sentence.
        in_training: sentence saying that a trainer divided by it.
        knobs: fields of the objective that have an effect only with it.
    """

    ddof: int = 1
    of_batch: bool = False
    of_centred: bool = False
    of_mean: bool = False
    divides: bool = True
    inline: str = ""
    phrase: str
    in_training: str
    source: str
    knobs: tuple[str, ...] = ("std_epsilon",)

    @property
    def of_group(self) -> bool:
        """Whether it is the standard deviation of each group."""
        return self.divides and not self.of_batch and not self.of_mean


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
    "centred": Deviation(
        of_batch=True,
        of_centred=True,
        inline=r"\sigma_{C}",
        phrase=tr("divide by the batch's standard deviation of what is left"),
        in_training=tr("The standard deviation was that of the centred rewards of the whole batch."),
        source="REINFORCE++, arXiv:2501.03262",
    ),
    "mean": Deviation(
        of_mean=True,
        inline=r"\bar{R}",
        phrase=tr("divide by its mean reward"),
        in_training=tr("The divisor was the mean reward of the group."),
        source="MaxRL, arXiv:2602.02710",
    ),
}
"""Divisors by name in the settings."""
