"""The measures of a race that can be drawn over training, and their axes."""

from __future__ import annotations

from typing import NamedTuple

from app.plotting.axis import Scale
from grpo_core.bandit.tasks import task
from grpo_core.config import Settings
from grpo_core.text import tr


class Measure(NamedTuple):
    """A quantity that every algorithm of a race has after every update, for example the expected reward.

    Attributes:
        scale: its axis; None for the range from the worst to the best possible reward.
    """

    title: str
    help: str
    scale: Scale | None


MEASURES: dict[str, Measure] = {
    "reward": Measure(
        tr("Expected reward"), tr("Exact, under the policy after each update; the mean over the prompts."), None
    ),
    "best_prob": Measure(tr("Best action"), tr("Probability of the action that pays most."), Scale(low=0, high=1)),
    "kl": Measure(
        tr("KL from the start"),
        tr("KL(π‖π_ref), exact; the reference is the policy at the start."),
        Scale(unit=tr("nats"), low=0),
    ),
    "entropy": Measure(tr("Entropy"), tr("Of the policy, exact."), Scale(unit=tr("nats"), low=0)),
    "signal_to_noise": Measure(
        tr("Signal to noise"),
        tr("Length of the mean step in the uphill direction, divided by the spread around it."),
        Scale(),
    ),
    "wrong_way": Measure(
        tr("Wrong way"),
        tr("Share of the seeds whose step pointed away from more reward; near the top, a KL penalty pulls back."),
        Scale(low=0, high=1),
    ),
}


def scale_of(measure: str, settings: Settings) -> Scale:
    """Return the axis of a measure in a race.

    Rewards range from the worst to the best possible one under ``settings``.
    """
    known = MEASURES[measure].scale
    if known is not None:
        return known
    rewards = task(settings.bandit).action_rewards
    assert rewards is not None
    low, high = float(rewards.min(axis=-1).mean()), float(rewards.max(axis=-1).mean())
    return Scale(low=low, high=high) if high > low else Scale()
