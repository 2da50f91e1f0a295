"""The family tree of algorithms: ancestry, differing switches, and the effect of each switch on the same runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from grpo_core.config import PRESETS, Settings
from grpo_core.errors import SettingsError
from grpo_core.experiments.ensemble import Ensemble
from grpo_core.surrogates import SURROGATES, Ratio
from grpo_core.text import tr


@dataclass(frozen=True, kw_only=True)
class Member:
    """A node of the family tree.

    Attributes:
        year: year of the paper.
        parent: name of the direct ancestor; empty for the first member.
        preset: name of the preset in :data:`PRESETS` with its switches.
        idea: its contribution, in one sentence.
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

UPDATES, SEEDS = 60, 32
MEASURE = "best_prob"
"""The measure of a member's performance: the probability of the best action, averaged over the prompts."""
FOLLOWERS = {
    "objective.surrogate": ("objective.clip_low", "objective.clip_high"),
    "objective.clip_low": ("objective.clip_high",),
    "objective.baseline": ("learner.critic",),
    "objective.reduction": ("objective.max_tokens",),
    "objective.beta": ("objective.kl", "objective.kl_in", "objective.kl_importance"),
}
"""Leading setting -> settings whose meaning depends on it, and which are therefore changed together with it."""


def member(name: str) -> Member:
    """Return the member called ``name``.

    Raises:
        SettingsError: there is no such member.
    """
    for one in FAMILY:
        if one.name == name:
            return one
    raise SettingsError("member", name, tr("it must be one of {names}").format(names=", ".join(m.name for m in FAMILY)))


def depth(one: Member) -> int:
    """Return the number of generations since the first member."""
    return 0 if not one.parent else 1 + depth(member(one.parent))


def forebear(one: Member) -> Member | None:
    """Return the direct ancestor of ``one``, or None for the first member."""
    return member(one.parent) if one.parent else None


def settings_of(one: Member, settings: Settings) -> Settings:
    """Return the settings of a member: its switches, with the task, group size and learning rate of ``settings``.

    A loss without a ratio takes one pass. All others take the number of passes in ``settings``, whatever their paper
    used.
    """
    own = PRESETS[one.preset].applied_to(settings)
    passes = 1 if SURROGATES[own.objective.surrogate].ratio is Ratio.NONE else settings.learner.mu
    return own.replace({"learner.mu": passes})


Switches = dict[str, dict[str, tuple[Any, Any]]]
"""Leading path of each switch -> the settings that are changed together, it first: path -> (ancestor's, own value)."""


def switches(one: Member, settings: Settings) -> Switches:
    """Return the switches in which a member differs from its ancestor. Empty for the first member."""
    before = forebear(one)
    if before is None:
        return {}
    left = settings_of(before, settings).differences(settings_of(one, settings))
    switches: Switches = {}
    for lead in [*FOLLOWERS, *left]:
        if lead in left:
            together = (lead, *(path for path in FOLLOWERS.get(lead, ()) if path in left))
            switches[lead] = {path: left.pop(path) for path in together}
    return switches


@dataclass(frozen=True, kw_only=True)
class Compared:
    """A member and the ancestor with which it is compared, with the same seeds.

    Attributes:
        own: runs of the member.
        before: runs of the ancestor; None for the first member of the family.
        turned: leading path of a switch -> the ancestor's runs with that switch and all earlier ones changed.
    """

    own: Ensemble
    before: Ensemble | None
    turned: dict[str, Ensemble]

    @property
    def change(self) -> np.ndarray:
        """The final :data:`MEASURE` of the member minus that of its ancestor, (S,). NaN for the first member."""
        return _change(self.before, self.own)

    def share(self, path: str) -> np.ndarray:
        """Return the part of :attr:`change` that a switch adds after all earlier ones, (S,). NaN without its runs."""
        return _change(*self._around(path))

    def same(self, path: str = "") -> bool:
        """Return whether a switch, or all switches together, leaves all final policies unchanged up to rounding."""
        before, after = self._around(path) if path else (self.before, self.own)
        return before is not None and after is not None and bool(np.allclose(before.policy, after.policy, atol=1e-9))

    def _around(self, path: str) -> tuple[Ensemble | None, Ensemble | None]:
        """Return the runs before and after a switch is changed. None if they do not exist yet."""
        paths = list(self.turned)
        if path not in paths:
            return None, None
        place = paths.index(path)
        return self.turned[paths[place - 1]] if place else self.before, self.turned[path]


def _change(before: Ensemble | None, after: Ensemble | None) -> np.ndarray:
    if before is None or after is None:
        return np.full(1, np.nan)
    return np.asarray(after.measures[MEASURE][-1] - before.measures[MEASURE][-1])


OWN, BEFORE = "own", "before"
"""Names of the runs of a member and of its ancestor in :func:`planned`."""


def planned(one: Member, settings: Settings) -> dict[str, Settings]:
    """Return the settings of the runs that compare a member with its ancestor.

    They are those of the two, :data:`OWN` and :data:`BEFORE`, and then those of the ancestor with this switch and all
    earlier ones changed, by the switch's leading path. The first member has only its own.
    """
    plan = {OWN: settings_of(one, settings)}
    before = forebear(one)
    if before is not None:
        start = plan[BEFORE] = settings_of(before, settings)
        for lead, changes in switches(one, settings).items():
            start = plan[lead] = start.replace({path: new for path, (_, new) in changes.items()})
    return plan


def compared(one: Member, runs: Mapping[str, Ensemble]) -> Compared | None:
    """Return the comparison by the ``runs`` so far of those :func:`planned`. None before it begins."""
    own, before = runs.get(OWN), runs.get(BEFORE)
    if own is None or (before is None and one.parent):
        return None
    turned = {lead: found for lead, found in runs.items() if lead not in (OWN, BEFORE)}
    return Compared(own=own, before=before, turned=turned)
