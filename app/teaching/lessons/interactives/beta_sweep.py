"""KL and reward over β. Every dot is the mean of real runs; the dotted line is the theoretical end point."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from PySide6.QtCore import QSignalBlocker, Slot

from app.boxes import across
from app.jobs.runner import Poll
from app.plotting.axis import Scale
from app.plotting.legend import Entry
from app.plotting.line_chart import LineChart
from app.plotting.line_data import Line, LinePicture, PointSet, Tag
from app.plotting.numbers import shown
from app.plotting.table_model import Column, Rows
from app.plotting.twin_stack import TwinStack
from app.teaching.lessons.interactives.many_runs import ManyRuns
from app.theme.labels import Label
from app.workspace.view import View
from grpo_core.config import Settings
from grpo_core.experiments.sweep import ESTIMATORS, tilt_measures
from grpo_core.teaching.lessons import Offer
from grpo_core.text import plural, tr

BETAS = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 2.0)
ASKED = 0.5
"""The value of β at which a question asks for the height of a dot."""
SEEDS, UPDATES = 16, 250
"""Seeds per dot, the same at every β, and number of updates per run, enough to converge."""
GROUP: dict[str, Any] = {"objective.baseline": "group_mean", "objective.std": "sample", "objective.surrogate": "clip"}
CURVES: dict[str, dict[str, Any]] = {
    **ESTIMATORS,
    "GRPO": {**GROUP, **ESTIMATORS["exact"]},
    "GRPO, k3": {**GROUP, **ESTIMATORS["k3"]},
}
"""Curves by their names in lesson files, as changes to the lesson's settings."""
MEANINGS = ("kl", "policy", "push_down", "entropy")
"""Colours of the curves, in the order in which a step lists them."""
PICTURES = {"kl": (tr("KL from reference"), 2.5), "reward": (tr("Expected reward"), 1.0)}
"""Title of each picture, and the upper end of its axis."""
LEGEND = (Entry(tr("theory π ∝ π_ref exp(r/β)"), "reference", "line"), Entry(tr("mean of 16 runs"), "text", "dot"))


def over_beta(
    theory: np.ndarray,
    curves: Mapping[str, np.ndarray],
    high: float,
    place: int,
    guess: float | None = None,
    *,
    asks: bool = False,
) -> LinePicture:
    """Return a chart of one measure over the grid of β, on an axis from 0 to ``high``.

    The theory (n,) is a dotted line. Each of the ``curves`` (n,) has a dot at every β, NaN where the value is not
    known yet; the dots at the β with index ``place`` are large. ``guess`` is the value predicted at the β of the
    question, or None. While a prediction is requested (``asks``) but not given, a hint marks where to drag it.
    """
    x = np.arange(len(BETAS), dtype=float)
    lines = [
        Line(name=name, label=name, meaning=meaning, x=x, y=values, marker="o", size=8)
        for meaning, (name, values) in zip(MEANINGS, curves.items(), strict=False)
    ]
    # theory coincides with the curves that converge to it
    dotted = Line(name="theory", title=tr("theory"), meaning="reference", x=x, y=theory, z=25)
    heights = np.array([theory[place], *(values[place] for values in curves.values())])
    here = PointSet(
        name="here", meaning="text", size=13, filled=False, x=np.full(len(heights), float(place)), y=heights
    )
    asked = float(BETAS.index(ASKED))
    known = np.array([] if guess is None else [guess])
    ghost = PointSet(
        name="guess", meaning="text", marker="d", size=14, filled=False, x=np.full(len(known), asked), y=known, z=30
    )
    tags: tuple[Tag, ...] = ()
    if guess is not None:
        tags = (Tag(tr("your prediction"), asked, guess, "text"),)
    elif asks:
        tags = (Tag(tr("drag your prediction here"), asked, 0.6 * high, "text"),)
    return LinePicture(
        x=Scale(label=tr("KL weight β"), low=-0.3, high=len(BETAS) - 0.7),
        y=Scale(low=0, high=high),
        lines=(*lines, dotted),
        points=(here, ghost),
        tags=tags,
        marks=np.array([float(place)]),
        x_ticks=[(float(n), f"{beta:g}") for n, beta in enumerate(BETAS)],
        x_name=lambda place: f"β {BETAS[min(max(round(place), 0), len(BETAS) - 1)]:g}",
        make_table=lambda: _table([*lines, dotted]),
    )


def _table(lines: Sequence[Line]) -> tuple[list[Column], Rows]:
    columns = [Column("beta", tr("KL weight β"), chars=7), *(Column(line.name, line.spoken, chars=9) for line in lines)]
    return columns, [[beta, *(float(line.y[n]) for line in lines)] for n, beta in enumerate(BETAS)]


class BetaSweep(ManyRuns[str, dict[str, float]]):
    """Two plots over the same grid of β, whose runs are computed in the background."""

    shows_run = False
    of_bandit = True
    offer = Offer(
        state={"curves": ()},
        words={"curves": tuple(CURVES)},
        checks=("gap", "rise_over_beta", "kl_at_half", "kl_at_one", "reward_at_half", "rise_from_half_to_one"),
    )

    def _build(self) -> None:
        self._names: tuple[str, ...] = ()
        self.place = BETAS.index(ASKED)
        self.plots = {key: LineChart(title) for key, (title, _) in PICTURES.items()}
        self.twins = [self.make_twin(plot, LEGEND) for plot in self.plots.values()]
        self.ghosts = (self.plots["kl"],)
        self.plots["kl"].height_dragged.connect(self._on_dragged)
        self.slider = self.make_slider(tr("KL weight β"), len(BETAS) - 1, lambda place: f"{BETAS[place]:g}")
        self.slider.setPageStep(1)
        self.beta, self.foot = Label(), Label(name="muted", wraps=True)
        row = across(self.beta, (self.slider, 1))
        self.lay_out(*((twin, 1) for twin in self.twins), row, self.note, self.foot)

    def of_many_runs(self) -> Sequence[TwinStack]:
        return self.twins

    def _take(self) -> None:
        self._names = self.state["curves"][: len(MEANINGS)]

    @Slot(float)
    def _on_dragged(self, height: float) -> None:
        self.guessed.emit(round(height, 2))

    @property
    def lanes(self) -> Sequence[str]:
        return self._names

    def waiting(self) -> str:
        done = sum(len(self.results(name)) for name in self._names)
        return plural(
            "{done} of {count} place of β done, {seeds} runs each.",
            "{done} of {count} places of β done, {seeds} runs each.",
            len(self._names) * len(BETAS),
        ).format(done=done, count=len(self._names) * len(BETAS), seeds=SEEDS)

    def _draw(self, view: View) -> str:
        self.train(view.next_settings)
        theory = [tilt_measures(self.settings, beta) for beta in BETAS]
        for key, plot in self.plots.items():
            curves = {name: self._values(name, key) for name in self._names}
            heights = np.array([best[key] for best in theory])
            guess, asks = (self.guess, self.asks) if key == "kl" else (None, False)
            plot.ask_height(asks)
            plot.show_picture(over_beta(heights, curves, PICTURES[key][1], self.place, guess, asks=asks))
        self.twins[1].setVisible(self.height() > 380 * view.scale)
        with QSignalBlocker(self.slider):
            self.slider.setValue(self.place)
        self.beta.setFont(view.theme.font("strong", view.scale))
        self.beta.setFixedWidth(self.beta.fontMetrics().horizontalAdvance("β = 0.000"))
        self.beta.setText(f"β = {BETAS[self.place]:g}")
        self.foot.setText(self._summary(view))
        return self._at_beta(theory[self.place])

    def _values(self, name: str, key: str) -> np.ndarray:
        """Return the "kl" or the "reward" of a curve at every β (n,), averaged over its runs. NaN if not known yet."""
        known = [means[key] for means in self.results(name)]
        return np.array([*known, *[math.nan] * (len(BETAS) - len(known))])

    def _at_beta(self, theory: Mapping[str, float]) -> str:
        """Return a line of text with the KL and reward of every curve, and of the theory, at the slider's β."""
        kl, reward = shown(theory["kl"], 2), shown(theory["reward"], 2)
        sentences = [tr("Theory: KL {kl}, reward {reward}.").format(kl=kl, reward=reward)]
        for name in self._names:
            means = [float(self._values(name, key)[self.place]) for key in ("kl", "reward")]
            if not math.isnan(means[0]):
                kl, reward = (shown(value, 2) for value in means)
                sentences.append(tr("{name}: KL {kl}, reward {reward}.").format(name=name, kl=kl, reward=reward))
        return " ".join(sentences)

    @Slot(int)
    def _on_slid(self, position: int) -> None:
        self.place = position
        self.touched.emit()

    def _summary(self, view: View) -> str:
        gaps = [f"{name}: {self._gap(name):.3f}" for name in self._names if not math.isnan(self._gap(name))]
        return (
            tr("Largest distance of KL from the dotted line, in nats: {gaps}.").format(gaps="; ".join(gaps))
            if gaps
            else tr("Training…")
        )

    def _gap(self, name: str) -> float:
        """Return the largest difference between a curve's KL and the theoretical KL."""
        theory = np.array([tilt_measures(self.settings, beta)["kl"] for beta in BETAS])
        return float(np.abs(self._values(name, "kl") - theory).max())

    def _answers(self) -> Mapping[str, Callable[[], float]]:
        """Return the numbers of the last curve that the step lists."""

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

    def computed(self, settings: Settings, lane: str, poll: Poll) -> Iterator[dict[str, float]]:
        """Yield the means over the seeds after the last update, one β at a time, for the curve called ``lane``."""
        points = {beta: settings.replace({**CURVES[lane], "objective.beta": beta}) for beta in BETAS}
        for _, runs in self.trained(points, self.seeds(SEEDS), UPDATES, poll):
            yield {measure: float(runs.measures[measure][-1].mean()) for measure in ("kl", "reward")}
