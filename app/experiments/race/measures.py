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
        title: displayed name.
        unit: for example "nats".
        help: one-sentence explanation.
    """

    title: str
    unit: str = ""
    help: str = ""


MEASURES: dict[str, Measure] = {
    "reward": Measure(
        tr("Expected reward"), help=tr("Exact, under the policy after each update; the mean over the prompts.")
    ),
    "best_prob": Measure(tr("Best action"), help=tr("Probability of the action that pays most.")),
    "kl": Measure(
        tr("KL from the start"), tr("nats"), tr("KL(π‖π_ref), exact; the reference is the policy at the start.")
    ),
    "entropy": Measure(tr("Entropy"), tr("nats"), tr("Of the policy, exact.")),
    "signal_to_noise": Measure(
        tr("Signal to noise"),
        "",
        tr("Length of the mean step in the uphill direction, divided by the spread around it."),
    ),
    "wrong_way": Measure(
        tr("Wrong way"),
        "",
        tr("Share of the seeds whose step pointed away from more reward; near the top, a KL penalty pulls back."),
    ),
}


def scale_of(measure: str, settings: Settings) -> Scale:
    """Return the axis of a measure in a race.

    Rewards range from the worst to the best possible one under ``settings``.
    """
    what = MEASURES[measure]
    if measure in ("best_prob", "wrong_way"):
        return Scale(low=0, high=1)
    if measure == "signal_to_noise":
        return Scale()
    if measure == "reward":
        rewards = task(settings.bandit).action_rewards
        assert rewards is not None
        low, high = float(rewards.min(axis=-1).mean()), float(rewards.max(axis=-1).mean())
        return Scale(low=low, high=high) if high > low else Scale()
    return Scale(unit=what.unit, low=0)
