"""The members of the family tree, their ancestry, and a one-sentence explanation of each."""

from __future__ import annotations

from dataclasses import dataclass

from grpo_core.text import tr


@dataclass(frozen=True, kw_only=True)
class Member:
    """A node of the family tree.

    Attributes:
        name: name used in the field.
        year: year of the paper.
        parent: name of the direct ancestor; empty for the first member.
        preset: name of the preset in :data:`PRESETS` with its switches.
        idea: its contribution, in one sentence.
        source: paper.
    """

    name: str
    year: int
    parent: str
    preset: str
    idea: str
    source: str

    @property
    def citation(self) -> str:
        """The source, followed by the year unless the source already contains it."""
        return self.source if str(self.year) in self.source else f"{self.source}, {self.year}"


FAMILY = (
    Member(
        name="REINFORCE", year=1992, parent="", preset="REINFORCE", source="Williams 1992",
        idea=tr("Push the log-probability of whatever was sampled by its reward."),
    ),
    Member(
        name="+ baseline", year=1992, parent="REINFORCE", preset="REINFORCE + baseline", source="Williams 1992",
        idea=tr("Subtract a baseline, here the batch's mean: a constant in the reward no longer matters."),
    ),
    Member(
        name="REINFORCE++", year=2025, parent="+ baseline", preset="REINFORCE++", source="arXiv:2501.03262",
        idea=tr("PPO's clip without a critic: rewards are compared, and divided, over the whole batch."),
    ),
    Member(
        name="PPO", year=2017, parent="+ baseline", preset="PPO-clip", source="arXiv:1707.06347",
        idea=tr("A clip in place of TRPO's bound, so that a batch can be used several times; a learned critic."),
    ),
    Member(
        name="GRPO", year=2024, parent="PPO", preset="GRPO (DeepSeekMath)", source="arXiv:2402.03300",
        idea=tr("The group replaces the critic: its mean is the baseline, its standard deviation the unit."),
    ),
    Member(
        name="Dr. GRPO", year=2025, parent="GRPO", preset="Dr. GRPO", source="arXiv:2503.20783",
        idea=tr("No standard deviation and a constant length: two biases fewer."),
    ),
    Member(
        name="MaxRL", year=2026, parent="GRPO", preset="MaxRL", source="arXiv:2602.02710",
        idea=tr("The mean reward in place of the standard deviation: the rarer a right answer, the more it counts."),
    ),
    Member(
        name="DAPO", year=2025, parent="GRPO", preset="DAPO", source="arXiv:2503.14476",
        idea=tr("A higher upper clip bound, dead groups drawn again, and the same weight for every token."),
    ),
    Member(
        name="CISPO", year=2025, parent="GRPO", preset="CISPO", source="arXiv:2506.13585",
        idea=tr("The ratio is capped as a weight; no token's gradient is ever removed."),
    ),
    Member(
        name="GSPO", year=2025, parent="GRPO", preset="GSPO", source="arXiv:2507.18071",
        idea=tr("One ratio for a whole completion, clipped very close to 1."),
    ),
    Member(
        name="LUSPO", year=2026, parent="GSPO", preset="LUSPO", source="arXiv:2602.05261",
        idea=tr("GSPO with every completion weighted by its length."),
    ),
    Member(
        name="GMPO", year=2025, parent="GRPO", preset="GMPO", source="arXiv:2507.20673",
        idea=tr("The geometric mean of clipped ratios, which a single large ratio moves less."),
    ),
    Member(
        name="SAPO", year=2025, parent="GRPO", preset="SAPO", source="arXiv:2511.20347",
        idea=tr("A soft gate in place of the clip: it takes more off the push the further the ratio is from 1."),
    ),
    Member(
        name="VESPO", year=2026, parent="GRPO", preset="VESPO", source="arXiv:2602.10693",
        idea=tr("A smooth weight that depends on the whole completion's ratio, in place of the clip."),
    ),
    Member(
        name="DPPO", year=2026, parent="GRPO", preset="DPPO", source="arXiv:2602.04879",
        idea=tr("A push stops when the token's probability has moved too far, not when the ratio has."),
    ),
    Member(
        name="RLOO", year=2024, parent="+ baseline", preset="RLOO", source="arXiv:2402.14740",
        idea=tr("Each sample's baseline is the mean of the others in its group."),
    ),
)  # fmt: skip # table, one row per line
"""Members in depth-first order; a parent always precedes its children."""
