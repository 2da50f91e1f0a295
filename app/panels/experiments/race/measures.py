"""What of a race can be drawn over training, and on which axis."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from app.plotting.axis import Scale
from grpo_core.bandit.tasks import task
from grpo_core.config import Settings
from grpo_core.experiments.ensemble import Ensemble, band
from grpo_core.text import tr


class Measure(NamedTuple):
    """Something that is known of every algorithm after every update.

    Attributes:
        title: in words.
        unit: such as "nats".
        help: one sentence.
        of_seeds: every seed has one of its own, so there is a median and a band.
    """

    title: str
    unit: str = ""
    help: str = ""
    of_seeds: bool = True


MEASURES: dict[str, Measure] = {
    "reward": Measure(
        tr("Expected reward"), help=tr("Exact, under the policy after each update; the mean over the prompts.")
    ),
    "best_prob": Measure(tr("Best action"), help=tr("Probability of the action that pays most.")),
    "kl": Measure(tr("KL from the start"), "nats", tr("KL(π‖π_ref), exact; the reference is the policy at the start.")),
    "entropy": Measure(tr("Entropy"), "nats", tr("Of the policy, exact.")),
    "signal_to_noise": Measure(
        tr("Signal to noise"), "", tr("Length of the mean step along the way uphill over the spread around it."), False
    ),
    "wrong_way": Measure(
        tr("Wrong way"),
        "",
        tr("Share of the seeds whose step pointed away from more reward; near the top a KL pulls back."),
        False,
    ),
}


class Course(NamedTuple):
    """One algorithm over training: places 0, 1, …, each ``spacing`` apart in x from ``first`` on; (n,) each.

    Without a band ``low`` and ``high`` are None.
    """

    first: float
    spacing: float
    middle: np.ndarray
    low: np.ndarray | None = None
    high: np.ndarray | None = None

    @property
    def x(self) -> np.ndarray:
        """Where the places lie, (n,)."""
        return np.asarray(self.first + self.spacing * np.arange(len(self.middle)))

    def every(self, spacing: float) -> Course:
        """The same with its places so far apart."""
        return self._replace(first=self.first / self.spacing * spacing, spacing=spacing)


def course(runs: Ensemble, measure: str) -> Course:
    """A measure of one algorithm over the updates."""
    if MEASURES[measure].of_seeds:
        return Course(0.0, 1.0, *band(runs.measures[measure]))
    share = runs.wrong_way if measure == "wrong_way" else runs.signal_to_noise
    return Course(1.0, 1.0, np.where(np.isfinite(share), share, np.nan))


def seed_course(runs: Ensemble, measure: str, place: int) -> Course | None:
    """The same of one seed; None where a seed by itself has none."""
    return Course(0.0, 1.0, runs.measures[measure][:, place]) if MEASURES[measure].of_seeds else None


def scale_of(measure: str, settings: Settings) -> Scale:
    """The axis of a measure in a race under ``settings``: from the worst reward that can be to the best."""
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
