"""The ranges of the values measured by the checks that found nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from grpo_core.text import tr
from grpo_core.trainers.claims.measured import Measured
from grpo_core.trainers.health import (
    exploited,
    groups,
    knobs,
    lengths,
    links,
    masks,
    numerics,
    paid_lengths,
    rewards,
    stale,
)
from grpo_core.trainers.health import policy_checks as policy
from grpo_core.trainers.health.check import Measure, finite
from grpo_core.trainers.health.finding import Healthy
from grpo_core.trainers.health.update import Update


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """The name of a measure's value, and whether it is a share."""

    name: str
    share: bool = False


QUANTITIES: Mapping[Callable[[Update], Measure | None], Quantity | None] = {
    exploited.means_of_parts: Quantity(name=tr("mean reward")),
    groups.dead_groups: Quantity(name=tr("groups without an advantage"), share=True),
    knobs.cap: Quantity(name=tr("cap on the weight")),
    knobs.reach: Quantity(name=tr("completions that are clipped"), share=True),
    lengths.cut_off: Quantity(name=tr("completions that are cut off"), share=True),
    lengths.length: Quantity(name=tr("mean length in tokens")),
    lengths.other_ends: Quantity(name=tr("completions without a known end"), share=True),
    links.delivered: Quantity(name=tr("mean difference between sampler and reference in nats")),
    links.given: Quantity(name=tr("mean size of an advantage")),
    links.left: Quantity(name=tr("loss left by masks and weights"), share=True),
    links.members: Quantity(name=tr("completions of the largest group")),
    links.moved: Quantity(name=tr("largest change of a log-probability in nats")),
    links.norm: Quantity(name=tr("gradient norm")),
    links.otherwise: Quantity(name=tr("tokens with another importance weight"), share=True),
    links.start: Quantity(name=tr("median difference in nats")),
    links.push: Quantity(name=tr("sum of |push|")),
    masks.all_counted: Quantity(name=tr("completions with tool answers that the loss counts in full"), share=True),
    masks.unwritten: Quantity(name=tr("tokens in the loss that the model did not write"), share=True),
    numerics.first_pass: Quantity(name=tr("mean difference in nats")),
    numerics.non_finite: Quantity(name=tr("count")),
    numerics.sampler: Quantity(name=tr("mean difference in nats")),
    paid_lengths.together: Quantity(name=tr("mean length in tokens")),
    policy.clipped: Quantity(name=tr("tokens that are clipped"), share=True),
    policy.entropy: Quantity(name=tr("entropy in nats per token")),
    policy.far_tokens: Quantity(name=tr("KL carried by single far tokens"), share=True),
    rewards.far_rewards: Quantity(name=tr("largest distance of a reward from the median")),
    rewards.largest_advantage: Quantity(name=tr("largest advantage")),
    rewards.spread_of_parts: None,  # judged by the covariance of the functions over the whole run
    stale.staleness: Quantity(name=tr("mean age of the samples in steps")),
    rewards.unscored: Quantity(name=tr("completions without a reward"), share=True),
}
"""The quantity that each measuring function returns. None if no single number per update is judged."""


def measured(measure: Callable[[Update], Measure | None], measures: Sequence[Measure]) -> Measured | None:
    """Return the claim about the range of a measure. None if there are no values or no single number per update."""
    quantity, course = QUANTITIES[measure], finite(measures)
    if quantity is None or not course:
        return None
    high = max(value for _, value in course)
    return Measured(
        quantity=quantity.name,
        share=quantity.share,
        low=min(value for _, value in course),
        high=high,
        where=next(label for label, value in course if value == high),
        count=len(course),
    )


def by_figure(looked_at: Sequence[Healthy]) -> list[tuple[tuple[str, ...], Measured | None]]:
    """Group the titles of checks that share a measured range. Those without one come last."""
    known = [one for one in looked_at if one.measured is not None]
    figures = list(dict.fromkeys(one.measured for one in known))
    ordered = sorted(known, key=lambda one: figures.index(one.measured))
    rows = [
        (tuple(one.title for one in those), figure) for figure, those in groupby(ordered, key=lambda one: one.measured)
    ]
    rest = tuple(one.title for one in looked_at if one.measured is None)
    return [*rows, *([(rest, None)] if rest else [])]
