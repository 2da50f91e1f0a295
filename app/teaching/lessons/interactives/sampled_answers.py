"""Base class of the pictures of a run's sampled answers: those of one update, and the share of right ones up to it."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from app.examples import RECORDED
from app.plotting.axis import Scale
from app.plotting.line_chart import LineChart
from app.plotting.line_data import Line, LinePicture
from app.plotting.table_model import Column
from app.teaching.lessons.interactives.base import Interactive, pages
from app.theme.labels import Label
from app.workspace.answers import GLYPHS, right
from app.workspace.run_handle import RunHandle
from app.workspace.view import View
from grpo_core.record import Origin, Step
from grpo_core.text import tr

LARGER = 1.1
"""Enlargement factor of the table's font, so that a class can read the model's answers."""


class SampledAnswers(Interactive):
    """The sampled answers of the current update, or the share of right answers up to it, on a fixed axis.

    The table is the first of ``offer.shows``.

    Attributes:
        recorded: the message that a recorded run cannot be continued.
    """

    columns: tuple[Column, ...]
    title: str

    def _build(self) -> None:
        self.answers = self.make_table(self.columns, self.title)
        self.curve = LineChart(tr("Share of right answers"))
        self._stack = pages(self.answers, self.make_twin(self.curve))
        self.recorded = Label(name="muted", wraps=True)
        self.lay_out((self._stack, 1), self.note, self.recorded, spacing=6)

    @classmethod
    def rows(cls, step: Step | None, origin: Origin) -> list[list[object]]:
        """Return one table row per sampled answer of an update."""
        judged = None if step is None else right(step, origin)
        if step is None or judged is None:
            return []
        return [[GLYPHS[bool(one)], *cls._cells(step, row, origin)] for row, one in enumerate(judged)]

    @staticmethod
    @abstractmethod
    def _cells(step: Step, row: int, origin: Origin) -> list[object]:
        """Return the cells of completion ``row`` after the first one."""

    @abstractmethod
    def _end(self, view: View) -> float:
        """Return the end of the axis of updates."""

    @abstractmethod
    def _lines(self, view: View) -> tuple[Line, ...]:
        """Return the lines over the updates."""

    @abstractmethod
    def _counted(self, step: Step, judged: np.ndarray) -> str:
        """Return a sentence about an update, given which of its answers are right (B,)."""

    def _draw(self, view: View) -> str:
        step, origin, end = view.step.step, view.run.origin, self._end(view)
        self.recorded.setFont(view.theme.font("body", view.scale))
        self.recorded.setText(view.run.read_only)
        self.recorded.setVisible(bool(view.run.read_only))
        self._stack.setCurrentIndex(self.offer.shows.index(self.shows))
        if self._stack.currentWidget() is self.answers:
            self.answers.set_look(view.theme, view.scale * LARGER)
            self.answers.set_rows(self.rows(step, origin))
        else:
            x, y = Scale(label=tr("update"), low=1, high=end, whole=True), Scale(low=0, high=1.05)
            self.curve.show_picture(LinePicture(x=x, y=y, lines=self._lines(view), places=(1.0, end)))
        judged = None if step is None else right(step, origin)
        return "" if step is None or judged is None else self._counted(step, judged)

    def _summary(self, view: View) -> str:
        return f"{self.note.text()} {RECORDED if view.run.read_only else ''}".strip()


def shares(run: RunHandle) -> np.ndarray:
    """Return the share of right answers in each update's batch, (n,), from the run's metrics."""
    return np.asarray(run.series["accuracy"].values[: run.head])
