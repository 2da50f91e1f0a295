"""The flight deck: a run's dials, and the effect of fixing one thing at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from PySide6.QtWidgets import QWidget

from app.jobs.runner import Poll
from app.plotting.axis import Scale
from app.plotting.bar_chart import BarChart
from app.plotting.bar_data import BarSeries
from app.plotting.numbers import shown
from app.teaching.lessons.interactives.bar_pictures import compared
from app.teaching.lessons.interactives.base import pages
from app.teaching.lessons.interactives.dials import Dials
from app.teaching.lessons.interactives.many_runs import ManyRuns
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.config import Settings
from grpo_core.errors import GrpoError
from grpo_core.experiments.ensemble import Ensemble
from grpo_core.teaching.lessons import Offer
from grpo_core.teaching.lessons.experiments.checkup import REMEDIES, SEEDS, audits, cause, right_at_end
from grpo_core.text import as_sentence, clauses, plural, tr

SHOWS = ("dials", "remedies")
TREATED = BarSeries(name=tr("this alone put right"), meaning="policy")
ILL = BarSeries(name=tr("as it is"), meaning="push_down", style="level")

NOTHING = np.empty(0)
Key = tuple[Settings, int, bool]
"""Key of results: the settings, the right action (counted from 0), and whether remedies are tried."""


class FlightDeck(ManyRuns[Key, tuple[str, np.ndarray | Ensemble]]):
    """Dials of the lesson's run, and a second page with six remedies, each tried separately on the same seeds.

    In the state, ``right`` is the intended action, counted from 1.
    """

    of_bandit = True
    offer = Offer(shows=SHOWS, checks=("cause", "audit", "ill", "treated"), state={"right": 1})

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self.dials = Dials(workspace)
        self.plot = BarChart(tr("Right answers at the end"))
        self.twin = self.make_twin(self.plot, [TREATED.entry, ILL.entry])
        self._stack = pages(self.dials, self.twin)
        self.lay_out((self._stack, 1), self.note, spacing=6)

    # -- state ---------------------------------------------------------------------------------------------------------

    @property
    def _right(self) -> int:
        """Index of the intended action."""
        return max(int(self.state["right"]), 1) - 1

    def keys(self, settings: Settings) -> Sequence[Key]:
        return [(settings, self._right, self.shows == "remedies")]

    @property
    def _key(self) -> Key:
        """Key of the results for the page shown."""
        return self.keys(self.settings)[0]

    @property
    def audit(self) -> np.ndarray:
        """Probability of the right action before training and after every update (U + 1,).

        The array is empty if they have not been computed yet.
        """
        return next((found for _, found in self.trained.results(self._key) if isinstance(found, np.ndarray)), NOTHING)

    @property
    def runs(self) -> dict[str, Ensemble]:
        """Runs so far by remedy. The key of the runs without a remedy is the empty string."""
        return {name: found for name, found in self.trained.results(self._key) if isinstance(found, Ensemble)}

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
            len(SEEDS),
        ).format(seeds=len(SEEDS), done=max(len(self.runs) - 1, 0), all=len(REMEDIES))

    # -- drawing -------------------------------------------------------------------------------------------------------

    def _draw(self, view: View) -> str:
        """Draw the dials or the remedies, and return their values or the remedy that helps."""
        self.train(view.wanted)
        self.dials.set_look(view.theme, view.scale)
        on_dials = self.shows == "dials"
        self._stack.setCurrentIndex(0 if on_dials else 1)
        self.note.setVisible(not on_dials)
        if self.trained.complete(self._key) and not len(self.audit):
            raise GrpoError(tr("The dials need a bandit whose actions include the right one."))
        if self.trained.problem:
            raise GrpoError(self.trained.problem)
        if on_dials:
            self.dials.show_run(view, self.audit)
            return as_sentence(clauses(self.dials.summary_of(name) for name in self.dials.plots))
        self._draw_remedies()
        if len(self.runs) <= len(REMEDIES):
            return ""
        name = list(REMEDIES)[max(cause(self.runs, self._right), 1) - 1]
        return plural(
            "Right answers over {seeds} seed: {ill} as it is, {treated} with “{remedy}” put right.",
            "Right answers over {seeds} seeds: {ill} as it is, {treated} with “{remedy}” put right.",
            len(SEEDS),
        ).format(
            seeds=len(SEEDS),
            ill=shown(self._mean(""), 2),
            treated=shown(self._mean(name), 2),
            remedy=REMEDIES[name].cause,
        )

    def _draw_remedies(self) -> None:
        level = np.full(len(REMEDIES), self._mean("") if self.runs else np.nan)
        means = np.array([self._mean(name) if name in self.runs else np.nan for name in REMEDIES])
        heights, names = {TREATED.name: means, ILL.name: level}, [one.title for one in REMEDIES.values()]
        axis = Scale(label=tr("π(right)"), low=0, high=1.05)
        self.plot.show_picture(compared((TREATED, ILL), heights, names, tr("put right"), axis))

    def _ends(self, name: str) -> np.ndarray:
        return np.asarray(np.nan_to_num(right_at_end(self.runs[name], self._right)))

    def _mean(self, name: str) -> float:
        return float(self._ends(name).mean())

    # -- answers -------------------------------------------------------------------------------------------------------

    def _answers(self) -> Mapping[str, Callable[[], float]]:
        whole = len(self.runs) == 1 + len(REMEDIES)
        return {
            "cause": lambda: float(cause(self.runs, self._right)) if whole else math.nan,
            "audit": lambda: float(self.audit[-1]) if len(self.audit) else math.nan,
            "ill": lambda: self._mean("") if whole else math.nan,
            "treated": lambda: max(self._mean(name) for name in REMEDIES) if whole else math.nan,
        }

    def computed(self, key: Key, poll: Poll) -> Iterator[tuple[str, np.ndarray | Ensemble]]:
        """Yield the audit and, if remedies are tried, the runs under each.

        If the run has no such action, yield nothing.
        """
        settings, right, treat = key
        if settings.is_language or right >= settings.bandit.actions:
            return
        yield "", audits(settings, right)
        if treat:
            yield from self.workspace.jobs.results("checkup", settings.replace({"seed": self.block}), right, poll=poll)
