"""Policies dragged by hand: the divergence between two of them with its estimators, and the ratio of every action."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from PySide6.QtCore import Slot

from app.boxes import across, down, turn
from app.plotting.axis import Scale
from app.plotting.bar_chart import BarChart
from app.plotting.bar_data import BarSeries
from app.plotting.legend import Entry
from app.plotting.line_chart import LineChart
from app.plotting.line_data import Line
from app.plotting.numbers import shown
from app.teaching.lessons.interactives.base import Interactive, pages
from app.teaching.lessons.interactives.pictures import (
    FRAME,
    LEAST_POWERS,
    STEPS,
    compared,
    distribution,
    powers_reached,
    ratio_bars,
    running_means,
    summary_of,
)
from app.teaching.lessons.readable import readable
from app.theme.labels import Label
from app.workspace.view import View
from grpo_core.errors import GrpoError, ShapeError
from grpo_core.teaching.lessons import Offer
from grpo_core.teaching.lessons.experiments import by_hand
from grpo_core.teaching.lessons.experiments.by_hand import (
    ANSWERS,
    RATIO_ANSWERS,
    Divergence,
    Ratios,
    from_weights,
    with_probability,
)
from grpo_core.text import listed, tr

KL_SHOWS = ("policies", "values", "running", "gradients")
"""Views: the two policies alone, or with one of the charts below them."""
POLICY, REFERENCE = (0.5, 0.2, 0.15, 0.1, 0.05), (0.2, 0.3, 0.1, 0.3, 0.1)
SAMPLES, FEWEST, MOST = 1000, 50, 100_000
K1 = BarSeries(name="k1", meaning="reward", style="outline")
K2 = BarSeries(name="k2", meaning="entropy", style="hatch")
K3 = BarSeries(name="k3", meaning="kl")
"""Colours and fills of the estimators, the same in all three charts."""
SCALED = BarSeries(name="ratio × k3", meaning="policy", style="hatch")
DOWN = BarSeries(name="−∇KL(π‖π_ref)", meaning="text", style="level")
BACK = BarSeries(name="−∇KL(π_ref‖π)", meaning="reference", style="level")
ESTIMATORS, STEPS_TAKEN = (K1, K2, K3), (K1, K2, K3, SCALED, DOWN, BACK)
"""Series compared in the two bar charts."""
NAMES = tuple(part.name for part in STEPS_TAKEN)
BESIDE = {
    "policy": BarSeries(name="π_ref", meaning="reference", style="outline", width=FRAME),
    "reference": BarSeries(name="π", meaning="policy", style="outline", width=FRAME),
}
"""Thin frames around the bars of either policy that show the other policy."""
NATS, REACH = Scale(unit=tr("nats")), 0.1
"""The axis of the estimators, and its minimum span."""


class KlExplorer(Interactive):
    """Two draggable policies. At the top, the exact KL in both directions; below, the estimators."""

    note_font = "digits"
    shows_run = False
    offer = Offer(
        shows=KL_SHOWS,
        checks=ANSWERS,
        state={
            "policy": POLICY,
            "reference": REFERENCE,
            "samples": SAMPLES,
            "seed": 1,
            "spread": True,
            "parts": NAMES,
        },
        words={"parts": NAMES},
    )

    def _build(self) -> None:
        self.policy = BarChart(tr("Policy π"), drag="bar", steps=STEPS, walks=True)
        self.reference = BarChart(tr("Reference π_ref"), drag="bar", steps=STEPS, walks=True)
        self.policy.dragged.connect(self._on_policy)
        self.reference.dragged.connect(self._on_reference)
        for bars in (self.policy, self.reference):
            bars.picked.connect(self.touched)
        self.values, self.gradients = BarChart(tr("Sampled values")), BarChart(tr("Average step"))
        self.running = LineChart(tr("Mean of the samples so far"))
        self.twins = {
            "values": self.make_twin(self.values, [part.entry for part in ESTIMATORS]),
            "running": self.make_twin(self.running),
            "gradients": self.make_twin(self.gradients, [part.entry for part in STEPS_TAKEN]),
        }
        self.tops = [self.make_twin(self.policy), self.make_twin(self.reference)]
        self.numbers, self.note = Label(wraps=True), Label(name="muted", wraps=True)
        self._both = across(*((twin, 1) for twin in self.tops), spacing=12)
        self.below = pages(*self.twins.values())
        self._parts = down((self._both, 5), (self.below, 5), spacing=4)
        self.lay_out(self.numbers, (self._parts, 1), self.note)
        self.divergence = self._computed(POLICY, REFERENCE, SAMPLES, 1)
        self._hidden = frozenset[str]()

    def _take(self) -> None:
        self._hidden = frozenset(NAMES).difference(self.state["parts"])
        try:
            self.divergence = self._computed(
                self.state["policy"], self.state["reference"], self.state["samples"], self.state["seed"] + self.block
            )
        except GrpoError:
            self.divergence = self._computed(POLICY, REFERENCE, SAMPLES, 1)

    def _computed(self, policy: Any, reference: Any, samples: int, seed: int) -> Divergence:
        logp, ref_logp = by_hand.from_weights(policy), by_hand.from_weights(reference)
        if len(logp) != len(ref_logp):
            raise ShapeError("reference", ref_logp.shape, str(logp.shape))
        return Divergence(logp, ref_logp, min(max(samples, FEWEST), MOST), max(seed, 0))

    def _drag(self, logp: np.ndarray, ref_logp: np.ndarray) -> None:
        self.divergence = Divergence(logp, ref_logp, self.divergence.samples, self.divergence.seed)
        self.touched.emit()

    @Slot(int, float)
    def _on_policy(self, action: int, prob: float) -> None:
        self._drag(by_hand.with_probability(self.divergence.logp, action, prob), self.divergence.ref_logp)

    @Slot(int, float)
    def _on_reference(self, action: int, prob: float) -> None:
        self._drag(self.divergence.logp, by_hand.with_probability(self.divergence.ref_logp, action, prob))

    def _draw(self, view: View) -> str:
        divergence, what = self.divergence, self.shows
        names = [str(n + 1) for n in range(len(divergence.logp))]
        prob, ref = np.exp(divergence.logp), np.exp(divergence.ref_logp)
        low = self._fit(view.scale)
        for twin, chart, own, other, meaning in (
            (self.tops[0], self.policy, prob, ref, "policy"),
            (self.tops[1], self.reference, ref, prob, "reference"),
        ):
            frame = BESIDE[meaning].with_heights(other)
            chart.show_picture(distribution(chart, own, names, meaning, frame, labelled=not low))
            self.said[twin] = summary_of(chart)
        self.below.setVisible(what in self.twins)
        if what in self.twins:
            self.below.setCurrentWidget(self.twins[what])
            self._draw_below(what, names)
            self.said[self.twins[what]] = self._of_below(what)
        self.numbers.setFont(view.theme.font("strong", view.scale * 1.15))
        self.numbers.setText(
            tr("KL(π‖π_ref) {both} nats · KL(π_ref‖π) {both2} nats").format(
                both=shown(divergence.both[0]), both2=shown(divergence.both[1])
            )
        )
        return self._note_text(what)

    def _draw_below(self, what: str, names: list[str]) -> None:
        divergence = self.divergence
        if what == "values":
            shown_values = compared(ESTIMATORS, divergence.by_action, names, tr("action"), NATS, reach=REACH)
            self.values.show_picture(shown_values)
        elif what == "running":
            if self.running.picture.subject is not divergence.running:
                lines = [Line(name=part.name, label=part.name, meaning=part.meaning) for part in ESTIMATORS]
                self.running.show_picture(running_means(lines, divergence.running, divergence.both[0]))
        else:
            down, back = divergence.descents
            heights = {**divergence.pulls, DOWN.name: down, BACK.name: back}
            shown_heights = {name: values for name, values in heights.items() if name not in self._hidden}
            self.gradients.show_picture(compared(STEPS_TAKEN, shown_heights, names, tr("action"), Scale(), reach=REACH))
            self.twins[what].legend.set_entries([part.entry for part in STEPS_TAKEN if part.name not in self._hidden])

    def _of_below(self, what: str) -> str:
        """Return a description of the chart below, without its numbers.

        The numbers are only in the chart's table, because the lesson asks for some of them.
        """
        parts = [part.name for part in (STEPS_TAKEN if what == "gradients" else ESTIMATORS)]
        return tr("{title}: {parts}. The key T shows the numbers as a table.").format(
            title=self.twins[what].plot.title, parts=listed(name for name in parts if name not in self._hidden)
        )

    def _fit(self, scale: float) -> bool:
        """Lay out the picture for its height, and return whether it is short, as it is with large type.

        In a short picture, the policies are placed above each other and to the left of the chart.
        """
        low = self.height() < 330 * scale
        turn(self._both, stacked=low)
        turn(self._parts, stacked=not low)
        return low

    def _note_text(self, what: str) -> str:
        divergence = self.divergence
        if what == "gradients":
            names = [name for name in ("k1", "k2", "k3", SCALED.name) if name not in self._hidden]
            return tr("Largest bar: {names}.").format(
                names=" · ".join(f"{name} {readable(divergence.size(name), 'digits')}" for name in names)
            )
        if what == "policies" or not self.state["spread"]:
            return ""
        spread = " · ".join(f"{name} {shown(mean)} ± {shown(sd)}" for name, (mean, sd) in divergence.moments.items())
        return tr("Mean ± spread: {spread}.").format(spread=spread)

    def _summary(self, view: View) -> str:
        return f"{self.numbers.text()}. {self.note.text()}"

    def _answers(self) -> Mapping[str, Callable[[], float]]:
        return self.divergence.answers()


RATIO_SHOWS = ("policy", "ratios", "alone")
"""Views: the policy, the policy with the ratios, and the ratio of each action if only its own probability rises."""
GAIN = 0.01
OLD = BarSeries(name=tr("π_old, which drew the samples"), meaning="old", style="outline", width=FRAME)


class RatioExplorer(Interactive):
    """A draggable policy drawn over the outlines of the old policy, with the ratios below.

    In the state, ``action`` is counted from 1, ``probability`` is the value to which its probability is initially set,
    and ``gain`` is the amount by which each action's probability rises in turn.
    """

    offer = Offer(shows=RATIO_SHOWS, checks=RATIO_ANSWERS, state={"action": 0, "probability": math.nan, "gain": GAIN})

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
        logp, action = old_logp, 0
        for action, prob in self._moves:
            action = min(max(action, 0), len(logp) - 1)
            logp = with_probability(logp, action, prob)
        objective = view.next_settings.objective
        ratios_now = self.ratios_now = Ratios(objective, old_logp, logp, action, self.state["gain"])
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
