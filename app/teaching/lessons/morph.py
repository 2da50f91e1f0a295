"""The picture of a lesson: created when the lesson is opened, and partly covered while a question is open.

During a reveal it changes by interpolation between two pictures: bars grow, lines are drawn.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.boxes import down
from app.plotting.bar_chart import BarChart
from app.plotting.bar_data import BarPicture, BarSeries, Lane
from app.plotting.line_chart import LineChart
from app.plotting.line_data import Line, LinePicture
from app.teaching.lessons.interactives.base import Interactive
from app.teaching.lessons.player import LessonPlayer, Phase
from app.workspace.film import eased
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.text import tr

PARTLY_HIDDEN = tr("Part of this picture is hidden until a question is answered.")


class LessonPicture(QWidget):
    """The container of the open lesson's interactive picture, one of ``app/teaching/lessons/interactives``.

    Attributes:
        interactive: the picture; None if the lesson has none of its own.
        filmed: whether it is being filmed, which hides invitations to operate it.

    Signals:
        touched: emitted when the user has changed something in it between frames.
        guessed: emitted when a prediction was dragged in it.
    """

    touched = Signal()
    guessed = Signal(float)

    def __init__(self, workspace: Workspace, lesson_player: LessonPlayer, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._workspace, self._lesson_player = workspace, lesson_player
        self.interactive: Interactive | None = None
        self.filmed = False
        self._morph: Morph | None = None
        self._place = down(on=self, margins=0)
        self.hide()

    def open(self, name: str) -> bool:
        """Show the interactive called ``name``, or none for an unknown name, and return whether it has changed."""
        from app.teaching.lessons.interactives.table import INTERACTIVES

        wanted = INTERACTIVES.get(name)
        if wanted is (None if self.interactive is None else type(self.interactive)):
            return False
        self.clear()
        if wanted is not None:
            self.interactive = wanted(self._workspace)
            self.interactive.touched.connect(self.touched)
            self.interactive.guessed.connect(self.guessed)
            self._place.addWidget(self.interactive)
        self.setVisible(wanted is not None)
        self._lesson_player.interactive = self.interactive
        return True

    def clear(self) -> None:
        self._morph = None
        old, self.interactive, self._lesson_player.interactive = self.interactive, None, None
        self.hide()
        if old is not None:
            old.dispose()
            self._place.removeWidget(old)
            old.hide()
            old.deleteLater()

    def draw(self, view: View, guess: float | None, *, asks: bool) -> None:
        """Draw the current step, interpolated during a reveal, and with parts covered while a question is open.

        Args:
            guess: the predicted height that is marked in the picture; None for no mark.
            asks: whether that mark can be dragged.
        """
        lesson_player, picture = self._lesson_player, self.interactive
        if picture is None:
            return
        picture.hidden = lesson_player.hidden
        picture.block = 0 if lesson_player.lesson is None else lesson_player.lesson.block
        picture.show_step(lesson_player.seen)
        picture.guess, picture.asks = guess, asks and not self.filmed
        picture.draw(view)
        if picture.ready and self._morph is not None:
            lesson_player.play_change()
        if self._morph is not None and lesson_player.phase is Phase.CHANGING:
            self._morph.blend(eased(lesson_player.reveal.share))
        elif self._morph is not None and picture.ready:
            self._morph.blend(1.0)
            self._morph = None
        picture.hide_parts(lesson_player.hidden, lesson_player.step.hides, view.theme, view.scale)
        picture.hold(lesson_player.covered)
        picture.setAccessibleDescription(PARTLY_HIDDEN if lesson_player.hidden else picture.summary(view))

    def show_on_paper(self) -> None:
        """Hide invitations to operate the picture if it cannot be operated."""
        if self.filmed and self.interactive is not None:
            self.interactive.show_on_paper()

    def keep_before_answer(self) -> None:
        """Store the current picture as the start of the transition to the answer."""
        self._morph = None if self.interactive is None else Morph(self.interactive)

    def dispose(self) -> None:
        """Stop all computations when the program closes."""
        if self.interactive is not None:
            self.interactive.dispose()


class Morph:
    """A transition of the charts of a widget from their old pictures to their new ones.

    A chart that was not redrawn between two frames still has the interpolated picture, so the target picture is
    stored separately.
    """

    def __init__(self, widget: QWidget) -> None:
        """Store the current picture of every chart inside ``widget``."""
        self._widget = widget
        self._before = {chart: chart.picture for kind in BETWEEN for chart in widget.findChildren(kind)}
        self._between: dict[QWidget, tuple[object, Any]] = {}

    def blend(self, share: float) -> None:
        """Set every chart to the picture at ``share`` (0 to 1) of the way to the latest one."""
        for kind, between in BETWEEN.items():
            for chart in self._widget.findChildren(kind):
                shown, target = self._between.get(chart, (None, None))
                target = target if shown is chart.picture else chart.picture
                if target is not self._before.get(chart):
                    chart.show_picture(between(self._before.get(chart), target, share))
                    self._between[chart] = chart.picture, target


def between_bars(before: BarPicture | None, after: BarPicture, share: float) -> BarPicture:
    """Return the bars at ``share`` of the way from one picture to another. Bars without a counterpart grow from 0."""
    if not after.framed or not after.count or share >= 1:
        return after
    same = before is not None and before.count == after.count and before.label == after.label
    known = {(s.name, s.style): s for s in before.series} if same and before is not None else {}

    def between(lane: Lane) -> Lane:
        series = [_bar(known.get((s.name, s.style)), s, share) for s in lane.series]
        return dataclasses.replace(lane, series=tuple(series), notes=())

    return dataclasses.replace(after, lanes=tuple(map(between, after.lanes)))


def _bar(before: BarSeries | None, after: BarSeries, share: float) -> BarSeries:
    if not after.is_bar or not len(after.heights):
        return after
    old = np.zeros_like(after.heights, dtype=float)
    if before is not None and len(before.heights) == len(old):
        old = np.nan_to_num(np.asarray(before.heights, dtype=float))
    return after.with_heights(old + (after.heights - old) * share, low=None, high=None)


def between_lines(before: LinePicture | None, after: LinePicture, share: float) -> LinePicture:
    """Return the lines at ``share`` of the way from one picture to another.

    Lines with the same points move; others are drawn from left to right.
    """
    if share >= 1:
        return after
    known = {} if before is None else before.by_name
    lines = [_line(known.get(line.name), line, share) for line in after.lines]
    return dataclasses.replace(after, lines=tuple(lines))


def _line(before: Line | None, after: Line, share: float) -> Line:
    if before is not None and len(before.x) == len(after.x) and np.array_equal(before.x, after.x):
        if np.array_equal(before.y, after.y, equal_nan=True):
            return after
        if np.isfinite(before.y).any():
            return dataclasses.replace(after, y=before.y + (after.y - before.y) * share, low=None, high=None)
    if not len(after.x):
        return after
    low, high = float(np.nanmin(after.x)), float(np.nanmax(after.x))
    there = after.x <= low + (high - low) * share
    return dataclasses.replace(after, y=np.where(there, after.y, np.nan))


BETWEEN: dict[type[Any], Callable[[Any, Any, float], Any]] = {BarChart: between_bars, LineChart: between_lines}
"""Kinds of charts, with the function that returns a picture between two others."""
