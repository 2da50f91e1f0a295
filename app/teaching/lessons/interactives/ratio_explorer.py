"""A policy dragged away from the one that sampled, and the resulting ratio of every action."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from PySide6.QtCore import Slot

from app.boxes import down, turn
from app.plotting.bar_chart import BarChart
from app.plotting.bar_data import BarSeries
from app.plotting.legend import Entry
from app.plotting.numbers import shown
from app.teaching.lessons.interactives.base import Interactive
from app.teaching.lessons.interactives.pictures import (
    FRAME,
    LEAST_POWERS,
    STEPS,
    distribution,
    powers_reached,
    ratio_bars,
    summary_of,
)
from app.teaching.lessons.readable import readable
from app.workspace.view import View
from grpo_core.config import Objective
from grpo_core.teaching.lessons import Offer
from grpo_core.teaching.lessons.experiments.by_hand import RATIO_ANSWERS, Ratios, from_weights, with_probability
from grpo_core.text import tr

SHOWS = ("policy", "ratios", "alone")
"""Views: the policy, the policy with the ratios, and the ratio of each action if only its own probability rises."""
GAIN = 0.01
OLD = BarSeries(name=tr("π_old, which drew the samples"), meaning="old", style="outline", width=FRAME)


class RatioExplorer(Interactive):
    """A draggable policy drawn over the outlines of the old policy, with the ratios below.

    In the state, ``action`` is counted from 1, ``probability`` is the value to which its probability is initially set,
    and ``gain`` is the amount by which each action's probability rises in turn.
    """

    offer = Offer(shows=SHOWS, checks=RATIO_ANSWERS, state={"action": 0, "probability": math.nan, "gain": GAIN})

    def _build(self) -> None:
        self.policy = BarChart(tr("Policy π"), drag="bar", steps=STEPS, walks=True)
        self.policy.dragged.connect(self._on_dragged)
        self.policy.picked.connect(self.touched)
        self.ratios = BarChart(tr("Ratio π / π_old"))
        self._powers = LEAST_POWERS
        self.top = self.make_twin(self.policy, [Entry(tr("π now"), "policy"), OLD.entry])
        self.below = self.make_twin(self.ratios, [Entry(tr("clip range"), "reference", "line")])
        self._parts = down((self.top, 1), (self.below, 1), spacing=4)
        self.lay_out((self._parts, 1), self.note)
        self._moves: list[tuple[int, float]] = []
        self.ratios_now: Ratios | None = None

    def _take(self) -> None:
        action, prob = self.state["action"], self.state["probability"]
        self._moves = [] if math.isnan(prob) else [(action - 1, prob)]
        self.policy.chosen = max(action - 1, 0)

    def _compute(self, objective: Objective, old_logp: np.ndarray) -> Ratios:
        """Return the ratios to the old policy after all drags."""
        logp, action = old_logp, 0
        for action, prob in self._moves:
            action = min(max(action, 0), len(logp) - 1)
            logp = with_probability(logp, action, prob)
        return Ratios(objective, old_logp, logp, action, self.state["gain"])

    @Slot(int, float)
    def _on_dragged(self, action: int, prob: float) -> None:
        if self._moves and self._moves[-1][0] == action:
            self._moves[-1] = action, prob
        else:
            self._moves.append((action, prob))
        self.touched.emit()

    def _draw(self, view: View) -> str:
        now, what = view.step.now, self.shows
        if now is None:
            return self.note.text()
        old_logp = from_weights(np.maximum(now[0], 1e-8).tolist())
        ratios_now = self.ratios_now = self._compute(view.next_settings.objective, old_logp)
        names = view.step.origin.vocabulary[: len(ratios_now.logp)]
        old = np.exp(ratios_now.old_logp)
        dragged = what != "alone"  # in that view, every action is changed in turn
        self.policy.set_drag("bar" if dragged else "")
        now = np.exp(ratios_now.logp) if dragged else old
        self.policy.show_picture(distribution(self.policy, now, names, "policy", OLD.with_heights(old), ringed=dragged))
        self.said[self.top] = summary_of(self.policy)
        self.below.setVisible(what != "policy")
        turn(self._parts, stacked=self.height() >= 330 * view.scale)
        if what != "policy":
            ratio = ratios_now.alone if what == "alone" else ratios_now.ratio
            heading = (
                tr("Ratio, if one action alone gains {gain}").format(gain=shown(self.state["gain"]))
                if what == "alone"
                else tr("Ratio π / π_old")
            )
            self.below.title.setText(heading)
            self._powers = powers_reached(ratio, self._powers)
            self.ratios.show_picture(ratio_bars(ratio, names, ratios_now.bounds, self._powers))
            listed = ", ".join(f"{name} {shown(float(one))}" for name, one in zip(names, ratio, strict=True))
            self.said[self.below] = f"{heading}: {listed}."
        return (
            ""
            if what == "policy"
            else _summary_of(ratios_now, ratios_now.alone if what == "alone" else ratios_now.ratio)
        )

    def _summary(self, view: View) -> str:
        return self.note.text() or self.said.get(self.top, "")

    def _answers(self) -> Mapping[str, Callable[[], float]]:
        return {} if self.ratios_now is None else self.ratios_now.answers()


def _summary_of(found: Ratios, ratio: np.ndarray) -> str:
    low, high = found.bounds
    outside = tr("{ratio} of {count} outside {low} to {high}").format(
        ratio=found.outside(ratio), count=len(ratio), low=shown(low, 2), high=shown(high, 2)
    )
    return tr("Smallest {min} · largest {max} · {outside}").format(
        min=readable(float(ratio.min()), "digits"), max=readable(float(ratio.max()), "digits"), outside=outside
    )
