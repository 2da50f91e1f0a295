"""The completions of a group, shown while they are being sampled.

An update of a large model takes long enough for them to be read.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from app.clock import now
from app.theme.labels import plain_tip
from app.theme.painting import frame, painter_of, write
from app.theme.tokens import LIGHT, Theme
from app.workspace.answers import on_one_line
from app.workspace.view import View
from grpo_core.progress import Phase, Progress
from grpo_core.record import Origin
from grpo_core.text import listed, tr
from grpo_core.texts import question_in

CARET = "▌"
"""Caret at the end of an unfinished completion."""
EDGE, BETWEEN = 8.0, 16.0
"""Pixels at 100 %: horizontal margins, and gap between two columns of lines."""
SHARE, FIRST_SHARE = 0.2, 0.45
"""Maximum share of the panel's height for the lines, if the last update is shown above them and if it is not.

At least one line is always shown.
"""
BAR, APART = 14.0, 3.0
"""Width of a group's bar next to the caption, and gap between two bars, in pixels at 100 %."""
COLUMN = 26
"""Minimum width of a column in characters. In a short panel, lines are arranged in columns."""
ANNOUNCE_SECONDS = 1.0
"""Minimum interval in seconds between two accessible descriptions while completions grow."""


@dataclass(frozen=True, kw_only=True)
class Writing:
    """The part of one group's completions written so far.

    Attributes:
        caption: the update's number, its progress, and the prompt.
        lines: the written text of each completion, on one line.
        group: number of that group in the update, counted from 0.
        groups: (P,) the written fraction of each group of the update, from 0 to 1; empty once all are sampled.
    """

    caption: str
    lines: tuple[str, ...]
    ended: tuple[bool, ...]
    group: int
    groups: tuple[float, ...]

    @classmethod
    def of(cls, progress: Progress, origin: Origin) -> Writing | None:
        """Return the known part of an update in progress, or None if its completions are not reported."""
        written = progress.written
        if written is None:
            return None
        question, samples = question_in(written.prompt, origin), progress.phase is Phase.SAMPLING
        caption = (
            tr("Update {step} is being written, token {done} of {total}: “{prompt}”")
            if samples
            else tr("Update {step} is written; the model is learning from it: “{prompt}”")
        ).format(step=progress.step, done=progress.done, total=progress.total, prompt=question)
        lines = tuple(on_one_line(np.array(tokens, dtype=np.int64), origin) for tokens in written.completions)
        ended = tuple(ends or not samples for ends in written.ended)
        return cls(caption=caption, lines=lines, ended=ended, group=written.group, groups=progress.groups)

    @property
    def words(self) -> str:
        """The caption and all lines, for screen readers."""
        lines = (line if ends else f"{line} …" for line, ends in zip(self.lines, self.ended, strict=True))
        return "\n".join([self.caption, *lines, *filter(None, [self.words_on_groups])])

    @property
    def words_on_groups(self) -> str:
        """A sentence with the written fraction of each group, or an empty string once all are sampled."""
        if not self.groups:
            return ""
        return tr("Written of each group: {shares}.").format(shares=listed(f"{share:.0%}" for share in self.groups))


class BeingWritten(QWidget):
    """A line per completion, with a caret while it is unfinished. Only the end of a long completion is shown.

    The widget is visible from the first reported completions until the run stops, so that nothing moves between
    updates.

    Attributes:
        writing: the content shown; None between two updates.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # in any language
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setMouseTracking(True)
        self.setAccessibleName(tr("Completions being written"))
        self.writing: Writing | None = None
        self._progress: Progress | None = None
        self._run = ""
        self._look = LIGHT, 1.0
        self._count, self._columns, self._lines = 0, 1, 1
        self._first = True  # no update is shown above
        self._described = 0.0
        self.hide()

    def follow(self, view: View, space: QSize) -> bool:
        """Show what is being written in a panel of size ``space``. Return whether the height left above has changed."""
        progress, look, shown = view.progress, (view.theme, view.scale), not self.isHidden()
        told = progress is not None and progress.written is not None
        stays = view.running and (told or (shown and self._run == view.run.id))
        if progress is not self._progress or look != self._look or self._run != view.run.id:
            self._progress, self._look, self._run = progress, look, view.run.id
            self.writing = Writing.of(progress, view.run.origin) if progress is not None else None
            self._count = len(self.writing.lines) if self.writing is not None else self._count
            self._describe()
            self.update()
        before, self._first = self.height() if shown else 0, view.step.step is None
        if stays:
            self._columns, self._lines = self._arranged(space)
            wanted = math.ceil((self._lines + 1.6) * self._line)
            if wanted != self.height():
                self.setFixedHeight(wanted)
        if stays != shown:
            self.setVisible(stays)
        return (self.height() if stays else 0) != before

    def _arranged(self, space: QSize) -> tuple[int, int]:
        """Return the number of columns, and of lines in each, that show as many completions as fit."""
        theme, scale = self._look
        share = FIRST_SHARE if self._first else SHARE
        most = max(int(share * space.height() / self._line - 1.6), 1)
        narrow = COLUMN * QFontMetricsF(theme.font("answer", scale)).horizontalAdvance("0")
        columns = max(min(math.ceil(self._count / most), int(space.width() / narrow)), 1)
        return columns, min(math.ceil(self._count / columns), most)

    @property
    def _line(self) -> float:
        theme, scale = self._look
        return QFontMetricsF(theme.font("answer", scale)).height() * 1.15

    def _describe(self) -> None:
        """Update the description for screen readers, at most once a second while tokens arrive."""
        moment, still = now(), self.writing is None or all(self.writing.ended)
        if still or moment - self._described >= ANNOUNCE_SECONDS:
            self._described = moment
            words = "" if self.writing is None else self.writing.words
            if words != self.accessibleDescription():
                self.setAccessibleDescription(words)

    def sizeHint(self) -> QSize:
        return QSize(0, self.height())

    # -- drawing -----------------------------------------------------------------------------------------------------

    def box(self, place: int) -> QRectF:
        """Return the rectangle of completion ``place``, empty if it does not fit."""
        scale = self._look[1]
        column, line = divmod(place, self._lines)
        if column >= self._columns:
            return QRectF()
        wide = (self.width() - 2 * EDGE * scale + BETWEEN * scale) / self._columns
        left, top = EDGE * scale + column * wide, (line + 1.4) * self._line
        return QRectF(left, top, wide - BETWEEN * scale, self._line)

    def paintEvent(self, event: QPaintEvent) -> None:
        theme, scale = self._look
        painter = painter_of(self, smooth=False)
        painter.setPen(QPen(theme.colour("border"), 1))
        painter.drawLine(QPointF(0, 0.5), QPointF(self.width(), 0.5))
        if self.writing is not None:
            bars = self.bars
            right = bars[0].left() - BETWEEN * scale if bars else self.width() - EDGE * scale
            space = QRectF(EDGE * scale, 0.15 * self._line, int(right - EDGE * scale), 1.2 * self._line)
            caption = self.writing.caption
            write(painter, space, caption, theme.font("digits", scale), theme.ink("muted"), elided=True)
            self._paint_bars(painter, theme, bars)
            painter.setFont(theme.font("answer", scale))
            for place in range(len(self.writing.lines)):
                self._paint_line(painter, theme, place)
        if self.hasFocus():
            ring = QRectF(self.rect()).adjusted(1, 1, -1, -1)
            frame(painter, ring, theme.ring)

    @property
    def bars(self) -> list[QRectF]:
        """Rectangles of the groups' bars to the right of the caption. The list is empty if they do not fit."""
        if self.writing is None:
            return []
        count, scale = len(self.writing.groups), self._look[1]
        each = min((BAR + APART) * scale, 0.4 * self.width() / max(count, 1))
        if each < 3:
            return []
        left, high = self.width() - EDGE * scale - count * each, 0.5 * self._line
        gap = min(APART * scale, each / 3)
        return [QRectF(left + n * each + gap, 0.5 * self._line, each - gap, high) for n in range(count)]

    def _paint_bars(self, painter: QPainter, theme: Theme, bars: list[QRectF]) -> None:
        """Paint a bar per group, filled to its written fraction, with a frame around that of the group shown."""
        assert self.writing is not None
        for n, (bar, share) in enumerate(zip(bars, self.writing.groups, strict=False)):
            painter.fillRect(bar, theme.colour("border"))
            painter.fillRect(QRectF(bar.left(), bar.top(), share * bar.width(), bar.height()), theme.colour("policy"))
            if n == self.writing.group:
                frame(painter, bar.adjusted(-0.5, -0.5, 0.5, 0.5), QPen(theme.colour("text"), 1))

    def _paint_line(self, painter: QPainter, theme: Theme, place: int) -> None:
        assert self.writing is not None
        box, line, ended = self.box(place), self.writing.lines[place], self.writing.ended[place]
        if box.isEmpty():
            return
        metrics = QFontMetricsF(painter.font())
        caret = "" if ended else CARET
        space = box.width() - metrics.horizontalAdvance(caret)
        end = line[-(2 * int(space / metrics.averageCharWidth()) + 1) :]  # measuring thousands of letters is slow
        text = metrics.elidedText(end, Qt.TextElideMode.ElideLeft, int(space)) or (tr("(nothing)") if ended else "")
        write(painter, box, text, painter.font(), theme.ink("text" if ended and line else "muted"))
        if caret:
            rest = box.adjusted(metrics.horizontalAdvance(text), 0, 0, 0)
            write(painter, rest, caret, painter.font(), theme.ink("push_up"))

    # -- input -------------------------------------------------------------------------------------------------------

    def tip(self, point: QPointF) -> str:
        """Return the tooltip at ``point``: the full completion, the full caption, or the progress of each group."""
        if self.writing is None:
            return ""
        if any(bar.contains(point) for bar in self.bars):
            return self.writing.words_on_groups
        lines = (line for n, line in enumerate(self.writing.lines) if self.box(n).contains(point))
        return next(lines, self.writing.caption)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        QToolTip.showText(event.globalPosition().toPoint(), plain_tip(self.tip(event.position())), self)
