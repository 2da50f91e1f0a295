"""KL and reward over β: every dot is the mean of real runs; dotted is where theory says that training arrives."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from PySide6.QtCore import Slot
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from app.experiments.runner import Poll, Runner
from app.lessons.interactives.base import Interactive
from app.plotting.axis import Scale
from app.plotting.legend import Entry
from app.plotting.line_chart import LineChart
from app.plotting.line_data import Line, LinePicture
from app.plotting.twin_stack import TwinStack
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.config import Settings
from grpo_core.experiments.ensemble import Ensemble, ensembles
from grpo_core.experiments.sweep import ESTIMATORS, tilt_measures
from grpo_core.lessons import Offer
from grpo_core.text import tr

BETAS = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 2.0)
SEEDS, UPDATES = range(16), 250
"""Runs of a dot, with the same random numbers at every β, and their length: long enough to arrive."""
GROUP: dict[str, Any] = {"objective.baseline": "group_mean", "objective.std": "sample", "objective.surrogate": "clip"}
CURVES: dict[str, dict[str, Any]] = {
    **ESTIMATORS,
    "GRPO": {**GROUP, **ESTIMATORS["exact"]},
    "GRPO, k3": {**GROUP, **ESTIMATORS["k3"]},
}
"""What the files call the curves: changes on top of the lesson's settings."""
MEANINGS = ("kl", "policy", "push_down", "entropy")
"""Colours of the curves, in the order in which a step names them."""
PICTURES = {"kl": (tr("KL from reference"), 2.5), "reward": (tr("Expected reward"), 1.0)}
"""Title of each picture, and where its axis ends."""
LEGEND = (Entry(tr("theory π ∝ π_ref exp(r/β)"), "reference", "line"), Entry(tr("mean of 16 runs"), "text", "dot"))


def over_beta(theory: np.ndarray, curves: Mapping[str, np.ndarray], high: float) -> LinePicture:
    """One measure over the grid of β, on an axis from 0 to ``high``: theory (n,) dotted, and a dot at every β of the
    curves (n,), NaN where a value is not known yet."""
    x = np.arange(len(BETAS), dtype=float)
    lines = [
        Line(name=name, label=name, meaning=meaning, x=x, y=values, marker="o", size=8)
        for meaning, (name, values) in zip(MEANINGS, curves.items(), strict=False)
    ]
    # theory lies on the curves that arrive where it says
    dotted = Line(name="theory", title=tr("theory"), meaning="reference", x=x, y=theory, z=25)
    return LinePicture(
        x=Scale(label=tr("KL weight β"), low=-0.3, high=len(BETAS) - 0.7), y=Scale(low=0, high=high),
        lines=(*lines, dotted), x_ticks=[(float(n), f"{beta:g}") for n, beta in enumerate(BETAS)],
        x_name=lambda place: f"β {BETAS[min(max(round(place), 0), len(BETAS) - 1)]:g}",
    )  # fmt: skip


class BetaSweep(Interactive):
    """Two plots over the same grid of β; runs are computed beside the window."""

    offer = Offer(
        state=("curves",),
        checks=("gap", "rise_over_beta", "kl_at_half", "kl_at_one", "reward_at_half", "rise_from_half_to_one"),
    )

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self._base = Settings()
        self._names: tuple[str, ...] = ()
        self._done: dict[Settings, tuple[float, float]] = {}
        self._coming: list[Settings] = []
        self._problem = ""
        self._runner = Runner(self)
        self._runner.arrived.connect(self._on_arrived)
        self._runner.ended.connect(self._on_ended)
        self.plots: dict[str, LineChart] = {}
        self.twins: list[TwinStack] = []
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        for key, (title, _) in PICTURES.items():
            plot = LineChart(title)
            self.plots[key] = plot
            self.twins.append(TwinStack(plot, LEGEND))
            column.addWidget(self.twins[-1], 1)
        self.foot = QLabel()
        self.foot.setObjectName("muted")
        self.foot.setWordWrap(True)
        column.addWidget(self.foot)

    # -- state ---------------------------------------------------------------------------------------------------------

    def take(self, state: Mapping[str, Any]) -> None:
        self._names = tuple(name for name in state.get("curves", ()) if name in CURVES)[: len(MEANINGS)]

    def _points(self, name: str) -> list[Settings]:
        """The settings of a curve's dots."""
        return [self._base.replace({**CURVES[name], "objective.beta": beta}) for beta in BETAS]

    @property
    def ready(self) -> bool:
        wanted = {point for name in self._names for point in self._points(name)}
        return wanted <= self._done.keys() or bool(self._problem)

    @property
    def said(self) -> str:
        if self._problem:
            return self._problem
        wanted = [point for name in self._names for point in self._points(name)]
        done = sum(point in self._done for point in wanted)
        return (
            tr("{done} of {count} places of β done, {count2} runs each.").format(
                done=done, count=len(wanted), count2=len(SEEDS)
            )
            if done < len(wanted)
            else ""
        )

    def draw(self, view: View) -> None:
        self._base = view.next_settings
        self._compute()
        theory = [tilt_measures(self._base, beta) for beta in BETAS]
        for twin, (key, plot) in zip(self.twins, self.plots.items(), strict=True):
            twin.set_look(view.theme, view.scale)
            curves = {name: self._values(name, key) for name in self._names}
            plot.show_picture(over_beta(np.array([told[key] for told in theory]), curves, PICTURES[key][1]))
            twin.set_summary(self.summary(view))
            twin.refresh()
        self.twins[1].setVisible(self.height() > 320 * view.scale)
        self.foot.setText(self.summary(view))

    def _values(self, name: str, key: str) -> np.ndarray:
        place = {"kl": 0, "reward": 1}[key]
        return np.array([self._done.get(point, (math.nan, math.nan))[place] for point in self._points(name)])

    def summary(self, view: View) -> str:
        gaps = [f"{name}: {self._gap(name):.3f}" for name in self._names if not math.isnan(self._gap(name))]
        return (
            tr("Largest distance of KL from the dotted line, in nats: {gaps}.").format(gaps="; ".join(gaps))
            if gaps
            else tr("Training…")
        )

    # -- runs ----------------------------------------------------------------------------------------------------------

    def _compute(self) -> None:
        """Train what is wanted and not there yet; what is being trained for another step is given up."""
        missing = [p for name in self._names for p in self._points(name) if p not in self._done]
        if not missing or missing == self._coming or (self._coming and set(missing) <= set(self._coming)):
            return
        self._coming, self._problem = list(dict.fromkeys(missing)), ""

        def trained(poll: Poll) -> Iterator[object]:
            with np.errstate(over="ignore", invalid="ignore"):
                yield from ensembles(self._coming, SEEDS, UPDATES, poll=poll)

        self._runner.start(trained)

    @Slot(object)
    def _on_arrived(self, runs: Ensemble) -> None:
        last = runs.measures["kl"][-1], runs.measures["reward"][-1]
        self._done[runs.settings] = float(last[0].mean()), float(last[1].mean())
        self.touched.emit()

    @Slot(str)
    def _on_ended(self, sentence: str) -> None:
        self._coming, self._problem = [], sentence
        self.touched.emit()

    def let_go(self) -> None:
        self._runner.close()

    # -- answers -------------------------------------------------------------------------------------------------------

    def _gap(self, name: str) -> float:
        """How far the KL of a curve is from theory's, at most."""
        theory = np.array([tilt_measures(self._base, beta)["kl"] for beta in BETAS])
        return float(np.abs(self._values(name, "kl") - theory).max())

    def _answers(self) -> Mapping[str, Callable[[], float]]:
        """Numbers of the curve that the step names last."""

        def at(beta: float, key: str = "kl") -> float:
            return float(self._values(self._names[-1], key)[BETAS.index(beta)])

        return {
            "gap": lambda: self._gap(self._names[-1]),
            "rise_over_beta": lambda: at(BETAS[-1]) - at(BETAS[0]),
            "kl_at_half": lambda: at(0.5),
            "kl_at_one": lambda: at(1.0),
            "reward_at_half": lambda: at(0.5, "reward"),
            "rise_from_half_to_one": lambda: at(1.0) - at(0.5),
        }
