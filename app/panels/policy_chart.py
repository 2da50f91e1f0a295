"""A policy as a bar chart: bars, thin frames, dotted levels, diamonds and dots over the actions."""

from __future__ import annotations

import numpy as np

from app.panels.policy_data import PolicyPicture
from app.plotting.axis import Scale
from app.plotting.bar_chart import BarChart
from app.plotting.bar_data import WIDTH, BarPicture, BarSeries
from app.plotting.numbers import shown
from grpo_core.text import tr

NOW = BarSeries(name=tr("now"), key="now", column=tr("π now"), meaning="policy")
BEFORE = BarSeries(name=tr("before"), key="old", column=tr("π before"), meaning="old", style="outline")
REFERENCE = BarSeries(
    name=tr("reference"), key="reference", column="π_ref", meaning="reference", style="level", width=WIDTH + 0.16
)
REWARD = BarSeries(name=tr("reward"), key="reward", column=tr("Reward"), meaning="reward", style="diamond")
SAMPLES = BarSeries(name=tr("samples"), key="samples", column=tr("Samples"), meaning="text", style="dots")
LEGEND = tuple(series.entry for series in (NOW, BEFORE, REFERENCE, REWARD, SAMPLES))
PROBABILITY = Scale(low=0, high=1.1)


def policy_chart() -> BarChart:
    """A chart for :func:`policy_picture`, in which rewards can be gripped."""
    return BarChart(tr("Policy over actions"), drag="diamond")


def reward_span(rewards: np.ndarray | None) -> tuple[float, float]:
    """The rewards that stand at 0 and at 1 of the axis: exactly these if all rewards (A,) lie between them."""
    if rewards is None:
        return 0.0, 1.0
    return min(float(rewards.min()), 0.0), max(float(rewards.max()), 1.0)


def policy_picture(what: PolicyPicture, action: int | None) -> BarPicture:
    """``what`` with ``action`` chosen, numbers over it and over the likeliest; rewards stretched as the axis says."""
    count, label, nothing = len(what.names), tr("action"), np.empty(0)
    low, high = reward_span(what.rewards)
    stretched = nothing if what.rewards is None else (what.rewards - low) / (high - low)
    here = action if action is not None and action < count else None
    likeliest = int(what.now.argmax())
    named = (likeliest,) if here is None else (likeliest, here)
    return BarPicture(
        names=tuple(what.names), label=label, y=PROBABILITY, chosen=here, kept=named,
        x_label=label if (low, high) == (0.0, 1.0) else tr("action   (◇ rewards from {low} to {high})").format(
            low=shown(low), high=shown(high)
        ),
        series=(
            NOW.with_heights(what.now), BEFORE.with_heights(what.old),
            REFERENCE.with_heights(nothing if what.reference is None else what.reference),
            REWARD.with_heights(stretched, values=nothing if what.rewards is None else what.rewards),
            SAMPLES.with_heights(what.samples),
        ),
        notes=tuple(f"{what.now[a]:.2f}" if a in named else "" for a in range(count)),
    )  # fmt: skip


def show_policy(chart: BarChart, what: PolicyPicture, action: int | None) -> None:
    """Draw ``what`` in ``chart``; without a chosen action the keys start from the likeliest."""
    if action is None:
        chart.chosen = int(what.now.argmax())
    chart.show_picture(policy_picture(what, action))
