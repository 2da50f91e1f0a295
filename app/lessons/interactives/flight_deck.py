"""The flight deck: a run's dials, and what becomes of it when one thing at a time is put right."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from PySide6.QtCore import Slot
from PySide6.QtWidgets import QLabel, QStackedLayout, QVBoxLayout, QWidget

from app.experiments.runner import Poll, Runner
from app.lessons.interactives.bar_pictures import compared
from app.lessons.interactives.base import Interactive
from app.lessons.interactives.dials import Dials
from app.plotting.axis import Scale
from app.plotting.bar_chart import BarChart
from app.plotting.bar_data import BarSeries
from app.plotting.numbers import shown
from app.plotting.twin_stack import TwinStack
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.config import Settings
from grpo_core.experiments.checkup import REMEDIES, SEEDS, audits, cause, checkup, right_at_end
from grpo_core.experiments.ensemble import Ensemble
from grpo_core.lessons import Offer
from grpo_core.text import tr

SHOWS = ("dials", "remedies")
TREATED = BarSeries(name=tr("this alone put right"), meaning="policy")
ILL = BarSeries(name=tr("as it is"), meaning="push_down", style="level")


class FlightDeck(Interactive):
    """Dials of the lesson's run; on the other page six remedies, each tried alone on the same seeds."""

    offer = Offer(shows=SHOWS, checks=("cause", "audit", "ill", "treated"), state=("right",))

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self.dials = Dials(workspace)
        self.plot = BarChart(tr("Right answers at the end"))
        self.twin = TwinStack(self.plot, [TREATED.entry, ILL.entry])
        self.note = QLabel()
        self.note.setWordWrap(True)
        pictures = QWidget()
        self._stack = QStackedLayout(pictures)
        self._stack.addWidget(self.dials)
        self._stack.addWidget(self.twin)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addWidget(pictures, 1)
        column.addWidget(self.note)
        self._right = 1
        self._settings: Settings | None = None
        self._seen: tuple[Settings, int] | None = None
        self._asked = ""
        self.audit = np.empty(0)
        self.runs: dict[str, Ensemble] = {}
        self.problem = ""
        self._runner = Runner(self)
        self._runner.arrived.connect(self._on_arrived)
        self._runner.ended.connect(self._on_ended)

    # -- state ---------------------------------------------------------------------------------------------------------

    def take(self, state: Mapping[str, Any]) -> None:
        """``right``: the action that is meant, counted from 1."""
        right = state.get("right", 1)
        self._right = right if isinstance(right, int) and right > 0 else 1

    @property
    def _what(self) -> str:
        return self.step.show or SHOWS[0]

    @property
    def ready(self) -> bool:
        if self.problem:
            return True
        treated = self._what != "remedies" or len(self.runs) == 1 + len(REMEDIES)
        return self._settings is not None and len(self.audit) > 0 and treated

    @property
    def said(self) -> str:
        if self.problem or self.ready or self._what != "remedies":
            return self.problem
        return tr("{seeds} seeds each: {done} of {all} remedies tried…").format(
            seeds=len(SEEDS), done=max(len(self.runs) - 1, 0), all=len(REMEDIES)
        )

    def _train(self, settings: Settings) -> None:
        """Compute what the page needs and does not have; other settings begin again."""
        if (settings, self._right) != self._seen:
            self._seen, self._settings, self._asked = (settings, self._right), settings, ""
            self.audit, self.runs, self.problem = np.empty(0), {}, ""
        if self.ready or self._asked == self._what:
            return
        self._asked = self._what
        right, treat = self._right - 1, self._what == "remedies"

        def compute(poll: Poll) -> Iterator[object]:
            if settings.is_language or right >= settings.bandit.actions:
                return
            yield settings, "", audits(settings, right)
            if treat:
                for name, runs in checkup(settings, right, poll=poll):
                    yield settings, name, runs

        self._runner.start(compute)

    @Slot(object)
    def _on_arrived(self, result: tuple[Settings, str, np.ndarray | Ensemble]) -> None:
        settings, name, found = result
        if settings != self._settings:
            return
        if isinstance(found, Ensemble):
            self.runs[name] = found
        else:
            self.audit = found
        self.touched.emit()

    @Slot(str)
    def _on_ended(self, sentence: str) -> None:
        if not sentence and not self.ready:
            sentence = tr("The dials are those of a bandit with the right action among its own.")
        self._asked, self.problem = "", sentence
        self.touched.emit()

    # -- drawing -------------------------------------------------------------------------------------------------------

    def draw(self, view: View) -> None:
        self._train(view.wanted)
        theme, scale = view.theme, view.scale
        self.dials.set_look(theme, scale)
        self.twin.set_look(theme, scale)
        self.note.setFont(theme.font("strong", scale))
        on_dials = self._what == "dials"
        self._stack.setCurrentIndex(0 if on_dials else 1)
        self.note.setVisible(not on_dials)
        if on_dials and not self.problem:
            self.dials.show_run(view, self.audit)
        elif not on_dials:
            self._draw_remedies()
        told = self.summary(view)
        self.note.setText(told)
        self.twin.set_summary(told)

    def _draw_remedies(self) -> None:
        level = np.full(len(REMEDIES), self._mean("") if self.runs else np.nan)
        means = np.array([self._mean(name) if name in self.runs else np.nan for name in REMEDIES])
        heights, names = {TREATED.name: means, ILL.name: level}, [one.title for one in REMEDIES.values()]
        axis = Scale(label=tr("π(right)"), low=0, high=1.05)
        self.plot.show_picture(compared((TREATED, ILL), heights, names, tr("put right"), axis))
        self.twin.refresh()

    def _ends(self, name: str) -> np.ndarray:
        return np.asarray(np.nan_to_num(right_at_end(self.runs[name], self._right - 1)))

    def _mean(self, name: str) -> float:
        return float(self._ends(name).mean())

    def summary(self, view: View) -> str:
        """What the dials stand at, or what helps, in a sentence."""
        if self.problem:
            return self.problem
        if self._what == "dials":
            return "; ".join(self.dials.told(name) for name in self.dials.plots) + "."
        if len(self.runs) <= len(REMEDIES):
            return ""
        name = list(REMEDIES)[max(cause(self.runs, self._right - 1), 1) - 1]
        return tr("Right answers over {seeds} seeds: {ill} as it is, {treated} with “{remedy}” put right.").format(
            seeds=len(SEEDS), ill=shown(self._mean(""), 2), treated=shown(self._mean(name), 2),
            remedy=REMEDIES[name].cause,
        )  # fmt: skip

    # -- answers -------------------------------------------------------------------------------------------------------

    def _answers(self) -> Mapping[str, Callable[[], float]]:
        whole = len(self.runs) == 1 + len(REMEDIES)
        return {
            "cause": lambda: float(cause(self.runs, self._right - 1)) if whole else math.nan,
            "audit": lambda: float(self.audit[-1]) if len(self.audit) else math.nan,
            "ill": lambda: self._mean("") if whole else math.nan,
            "treated": lambda: max(self._mean(name) for name in REMEDIES) if whole else math.nan,
        }

    def let_go(self) -> None:
        self._runner.close()
