"""The flight deck: a run's dials, and the effect of fixing one thing at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
from PySide6.QtCore import Slot
from PySide6.QtWidgets import QGridLayout, QWidget

from app.boxes import down
from app.jobs.runner import Poll
from app.plotting.axis import Scale
from app.plotting.bar_chart import BarChart
from app.plotting.bar_data import BarSeries
from app.plotting.numbers import share as percent
from app.plotting.numbers import shown
from app.plotting.plot import Plot
from app.plotting.pyramid import Pyramid
from app.plotting.twin_stack import TwinStack
from app.teaching.lessons.interactives.base import pages
from app.teaching.lessons.interactives.many_runs import ManyRuns
from app.teaching.lessons.interactives.pictures import compared
from app.theme.labels import Label
from app.workspace.view import View
from grpo_core.config import Settings
from grpo_core.errors import GrpoError
from grpo_core.experiments.ensemble import Ensemble
from grpo_core.explain import Quantity
from grpo_core.metrics import METRICS
from grpo_core.teaching.lessons import Offer
from grpo_core.teaching.lessons.experiments.checkup import (
    REMEDIES,
    SEEDS,
    UPDATES,
    audits,
    cause,
    right_at_end,
    treatments,
)
from grpo_core.text import as_sentence, clauses, plural, tr

SHOWS = ("dials", "remedies")
TREATED = BarSeries(name=tr("this alone put right"), meaning="policy")
ILL = BarSeries(name=tr("as it is"), meaning="push_down", style="level")

AUDIT = "audit"
TITLES = {
    "reward_mean": tr("Reward"),
    AUDIT: tr("Right answers"),
    "entropy": tr("Entropy"),
    "kl": tr("KL"),
    "dead_groups": tr("Dead groups"),
    "clip_fraction": tr("Clipped"),
}
"""Short titles, so that name and value fit on one line at any size."""
COLUMNS = 3
NOTHING = np.empty(0)


class FlightDeck(ManyRuns[tuple[int, bool], tuple[str, np.ndarray | Ensemble]]):
    """Dials of the lesson's run, and a second page with six remedies, each tried separately on the same seeds.

    In the state, ``right`` is the intended action, counted from 1.
    """

    of_bandit = True
    offer = Offer(shows=SHOWS, checks=("cause", "audit", "ill", "treated"), state={"right": 1})

    def _build(self) -> None:
        self.dials = QWidget()
        self.heads: dict[str, Label] = {}
        self.plots: dict[str, Plot] = {}
        self.twins: dict[str, TwinStack] = {}
        grid = QGridLayout(self.dials)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(12)
        grid.setVerticalSpacing(8)
        for place, name in enumerate(TITLES):
            self.heads[name] = Label()
            high = 1 if _is_share(name) or name == "reward_mean" else None
            plot = self.plots[name] = Plot(TITLES[name], Scale(label="", low=0, whole=True), Scale(low=0, high=high))
            plot.add_curve(name, "", METRICS[name].colour if name in METRICS else "policy")
            plot.activated.connect(partial(self._on_activated, name))
            twin = self.twins[name] = self.make_twin(plot, headed=False)
            grid.addLayout(down(self.heads[name], (twin, 1), spacing=0), place // COLUMNS, place % COLUMNS)
        self.plot = BarChart(tr("Right answers at the end"))
        self.twin = self.make_twin(self.plot, [TREATED.entry, ILL.entry])
        self._stack = pages(self.dials, self.twin)
        self.lay_out((self._stack, 1), self.note, spacing=6)

    @property
    def _right(self) -> int:
        return max(int(self.state["right"]), 1) - 1

    @property
    def lanes(self) -> Sequence[tuple[int, bool]]:
        """The right action, counted from 0, and whether remedies are tried."""
        return [(self._right, self.shows == "remedies")]

    @property
    def _found(self) -> list[tuple[str, np.ndarray | Ensemble]]:
        return self.results(self.lanes[0])

    @property
    def audit(self) -> np.ndarray:
        """Probability of the right action at the start and after every update (U + 1,). Empty if not computed yet."""
        return next((found for _, found in self._found if isinstance(found, np.ndarray)), NOTHING)

    @property
    def runs(self) -> dict[str, Ensemble]:
        """Runs so far by remedy. The key of the runs without a remedy is the empty string."""
        return {name: found for name, found in self._found if isinstance(found, Ensemble)}

    @property
    def ready(self) -> bool:
        return bool(self.problem) or (super().ready if self.shows == "remedies" else len(self.audit) > 0)

    @property
    def progress_text(self) -> str:
        return self.problem or ("" if self.ready or self.shows != "remedies" else self.waiting())

    def waiting(self) -> str:
        return plural(
            "{seeds} seed each: {done} of {all} remedies tried…",
            "{seeds} seeds each: {done} of {all} remedies tried…",
            SEEDS,
        ).format(seeds=SEEDS, done=max(len(self.runs) - 1, 0), all=len(REMEDIES))

    def _draw(self, view: View) -> str:
        self.train(view.wanted)
        on_dials = self.shows == "dials"
        self._stack.setCurrentIndex(0 if on_dials else 1)
        self.note.setVisible(not on_dials)
        if self.complete(self.lanes[0]) and not len(self.audit):
            raise GrpoError(tr("The dials need a bandit whose actions include the right one."))
        if self.failure:
            raise GrpoError(self.failure)
        if on_dials:
            self._draw_dials(view)
            return as_sentence(clauses(map(self.summary_of, TITLES)))
        level = np.full(len(REMEDIES), self._mean("") if self.runs else np.nan)
        means = np.array([self._mean(name) if name in self.runs else np.nan for name in REMEDIES])
        heights, names = {TREATED.name: means, ILL.name: level}, [one.title for one in REMEDIES.values()]
        axis = Scale(label=tr("π(right)"), low=0, high=1.05)
        self.plot.show_picture(compared((TREATED, ILL), heights, names, tr("put right"), axis))
        if len(self.runs) <= len(REMEDIES):
            return ""
        name = list(REMEDIES)[max(cause(self.runs, self._right), 1) - 1]
        return plural(
            "Right answers over {seeds} seed: {ill} as it is, {treated} with “{remedy}” put right.",
            "Right answers over {seeds} seeds: {ill} as it is, {treated} with “{remedy}” put right.",
            SEEDS,
        ).format(
            seeds=SEEDS,
            ill=shown(self._mean(""), 2),
            treated=shown(self._mean(name), 2),
            remedy=REMEDIES[name].cause,
        )

    def _draw_dials(self, view: View) -> None:
        """Draw the run of ``view``, with the probability of the right action next to the rewards."""
        for name in TITLES:
            curve = self.plots[name].curves[0]
            curve.series = Pyramid(self.audit) if name == AUDIT else view.run.series[name]
            curve.first = 0.0 if name == AUDIT else 1.0
            if name == "entropy":
                uniform = math.log(view.run.origin.settings.bandit.actions)
                self.plots[name].set_scales(y=Scale(low=0, high=uniform * 1.02))
            self.heads[name].setFont(view.theme.font("strong", view.scale))
            self.heads[name].setText(self.summary_of(name))
            self.said[self.twins[name]] = self.summary_of(name)

    def summary_of(self, name: str) -> str:
        """Return the name and the last value of a dial."""
        series = self.plots[name].curves[0].series
        last = float(series.values[-1]) if len(series) else math.nan
        value = percent(last) if _is_share(name) else shown(last)
        unit = METRICS[name].unit if name in METRICS else ""
        return f"{TITLES[name]}  {value} {unit}".rstrip()

    @Slot(float)
    def _on_activated(self, name: str, update: float) -> None:
        """Open the explanation of a dial's number after Return or E."""
        if name in METRICS and update >= 1:
            self.workspace.move_to(round(update))
            self.workspace.explain(Quantity(name))

    def _mean(self, name: str) -> float:
        return float(np.nan_to_num(right_at_end(self.runs[name], self._right)).mean())

    def _answers(self) -> Mapping[str, Callable[[], float]]:
        whole = len(self.runs) == 1 + len(REMEDIES)
        return {
            "cause": lambda: float(cause(self.runs, self._right)) if whole else math.nan,
            "audit": lambda: float(self.audit[-1]) if len(self.audit) else math.nan,
            "ill": lambda: self._mean("") if whole else math.nan,
            "treated": lambda: max(self._mean(name) for name in REMEDIES) if whole else math.nan,
        }

    def computed(
        self, settings: Settings, lane: tuple[int, bool], poll: Poll
    ) -> Iterator[tuple[str, np.ndarray | Ensemble]]:
        """Yield the audit and, if remedies are tried, the runs under each. Nothing if the run has no such action."""
        right, treat = lane
        if settings.is_language or right >= settings.bandit.actions:
            return
        yield "", audits(settings, right)
        if treat:
            yield from self.trained(treatments(settings, right), self.seeds(SEEDS), UPDATES, poll)


def _is_share(name: str) -> bool:
    """Return whether a dial shows a share between 0 and 1."""
    return name == AUDIT or METRICS[name].share
