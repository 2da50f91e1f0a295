"""Completions as rows of tokens. Only visible tokens are painted, whether there are three or two thousand."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, Qt, Signal
from PySide6.QtGui import QFocusEvent, QHelpEvent, QKeyEvent, QMouseEvent, QPainter, QResizeEvent
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QToolTip, QWidget

from app.theme.labels import plain_tip
from app.theme.painted_ahead import PaintedAhead
from app.theme.tokens import LIGHT, Theme
from app.token_grid.cells import BETWEEN, Cells, Note
from app.token_grid.token_film import Moment
from grpo_core.text import tr

TOP = 4.0


@dataclass(frozen=True, kw_only=True)
class Flow:
    """The layout of one completion.

    Attributes:
        left, width: position and width of each token, in pixels.
        starts: first token of each line; at least one line.
    """

    left: list[float]
    width: list[float]
    starts: list[int]

    @property
    def ends(self) -> list[int]:
        return [*(start - 1 for start in self.starts[1:]), len(self.left) - 1] if self.left else []

    def line_of(self, token: int) -> int:
        return bisect_right(self.starts, token) - 1

    def tokens(self, line: int) -> range:
        end = self.starts[line + 1] if line + 1 < len(self.starts) else len(self.left)
        return range(self.starts[line], end)

    def nearest(self, line: int, x: float) -> int | None:
        """Return the token of a line nearest to ``x``, or None if the completion is empty."""
        tokens = self.tokens(line)
        return min(tokens, key=lambda i: abs(self.left[i] + self.width[i] / 2 - x), default=None)


def flow(texts: Sequence[str], *, left: float, space: float, glyph: float, gap: float) -> Flow:
    """Lay out ``texts`` between ``left`` and ``left + space``. A token wider than that is placed alone on a line."""
    if not texts:
        return Flow(left=[], width=[], starts=[0])
    letters = np.maximum(np.fromiter(map(len, texts), np.int64, len(texts)), 1)
    widths = (letters + 0.9) * glyph
    behind = np.cumsum(widths + gap)
    ends = behind.tolist()
    starts, offset = [0], [0.0]
    while True:
        begun = ends[starts[-1] - 1] if starts[-1] else 0.0
        following = max(bisect_right(ends, begun + space + gap), starts[-1] + 1)
        if following >= len(texts):
            break
        starts.append(following)
        offset.append(ends[following - 1])
    before = np.repeat(offset, np.diff([*starts, len(texts)]))
    return Flow(left=(left + behind - gap - widths - before).tolist(), width=widths.tolist(), starts=starts)


@dataclass(frozen=True, kw_only=True, eq=False)
class TokenRows:
    """The data of the grid, one row per completion.

    Attributes:
        index: (n,) row of the record for each row drawn.
        texts: tokens of each row.
        share: (n, T) tint between −1 and 1.
        signed: whether the tint distinguishes signs.
        clipped: (n, T) boolean.
        notes: notes to the right of each row.
        dead: whether the group has no signal.
        tip: tooltip of (row drawn, token).
        names: label to the left of each row; by default the number of its completion.
        scored: number of notes in each row that appear with its reward; the next one is its advantage.
        bars: (n,) each advantage divided by the largest, from −1 to 1; None if completions have no single advantage.
        counts: tokens of each row that count in the loss; None if all do.
    """

    index: np.ndarray
    texts: list[list[str]]
    share: np.ndarray
    signed: bool
    clipped: np.ndarray
    notes: list[list[Note]]
    dead: bool
    tip: Callable[[int, int | None], str]
    names: list[str] | None = None
    scored: int = 0
    bars: np.ndarray | None = None
    counts: list[list[bool]] | None = None


NO_ROWS = TokenRows(
    index=np.empty(0, np.int64),
    texts=[],
    share=np.empty((0, 0)),
    signed=False,
    clipped=np.empty((0, 0), bool),
    notes=[],
    dead=False,
    tip=lambda n, token: "",
)


class TokenGrid(PaintedAhead, QAbstractScrollArea):
    """The grid widget. Arrow keys move between tokens, PageUp and PageDown between groups.

    A click selects a token; Return explains it.

    Signals:
        chosen: (row of the record, token).
        activated: explain this token (row, token).
        turned: number of groups by which to move.
    """

    chosen = Signal(int, int)
    activated = Signal(int, int)
    turned = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # in any language
        self.rows = NO_ROWS
        self._cells = Cells(LIGHT, 1.0)
        self._selected: tuple[int, int] | None = None
        self._flows: list[Flow] = []
        self._tops: list[float] = [TOP]
        self._columns: list[float] = []
        self._beside = 0.0
        self._laid: tuple[object, ...] = ()
        self._moment: Moment | None = None
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName(tr("Completions"))
        self.setAccessibleDescription(
            tr(
                "Arrow keys choose a token; in a lesson, hold Shift, because Left and Right change the step. "
                "Return explains the token."
            )
        )
        self._look: tuple[Theme, float] = LIGHT, 1.0

    def show_rows(self, rows: TokenRows, theme: Theme, scale: float, selected: tuple[int, int] | None) -> None:
        """Show these rows with a ring around the selected (row of the record, token)."""
        if self._look != (theme, scale):
            self._look, self._cells = (theme, scale), Cells(theme, scale)
        moved = selected is not None and selected != self._selected
        self.rows, self._selected = rows, selected
        self._lay_out()
        if moved and selected is not None:
            self._reveal(*selected)
        self.note_change()
        self.viewport().update()

    def show_moment(self, moment: Moment | None) -> None:
        """Reveal only what ``moment`` describes, or everything if it is None."""
        if moment != self._moment:
            self._moment = moment
            self.note_change()
            self.viewport().update()

    # -- geometry ----------------------------------------------------------------------------------------------------

    def _lay_out(self) -> None:
        """Compute the position of each token, but only if the tokens or the width have changed."""
        cells, texts, width = self._cells, self.rows.texts, self.viewport().width()
        self._columns = cells.columns(self.rows.notes, width * 0.5)
        notes = max(sum(self._columns) - BETWEEN, 0.0)  # no gap behind the last column
        space = max(width - cells.label - notes - 1.5 * cells.glyph, 6 * cells.glyph)
        if self._laid == (cells, space, width, texts):
            return
        self._laid = (cells, space, width, texts)
        self._flows = [flow(row, left=cells.label, space=space, glyph=cells.glyph, gap=cells.gap) for row in texts]
        ends = (f.left[i] + f.width[i] for f in self._flows for i in f.ends)
        self._beside = min(max(ends, default=0.0) + 3 * cells.glyph, width - notes)
        self._tops = list(accumulate((len(f.starts) * cells.line for f in self._flows), initial=TOP))
        bar = self.verticalScrollBar()
        bar.setRange(0, max(round(self._tops[-1] + TOP - self.viewport().height()), 0))
        bar.setPageStep(self.viewport().height())
        bar.setSingleStep(round(cells.line))

    def box(self, n: int, token: int) -> QRectF:
        """Return the rectangle of a token in the drawn row ``n``, relative to the top of the first row."""
        places = self._flows[n]
        top = self._tops[n] + places.line_of(token) * self._cells.line
        return QRectF(places.left[token], top, places.width[token], self._cells.height)

    def explained_box(self) -> QRect:
        """Return the rectangle of the selected token in the widget."""
        row, token = self._selected or (-1, 0)
        n = self.place_of(row)
        if n is None or token >= len(self.rows.texts[n]):
            return self.rect()
        return self.box(n, token).translated(0, -self.verticalScrollBar().value()).toAlignedRect()

    def place_of(self, row: int) -> int | None:
        """Return the first drawn row of completion ``row``, or None if it is not drawn."""
        return next(iter(np.flatnonzero(self.rows.index == row).tolist()), None)

    def _at(self, point: QPointF) -> tuple[int, int | None] | None:
        """Return the (row drawn, token) under a point of the viewport. The token is None if the point is not on one."""
        y = point.y() + self.verticalScrollBar().value()
        for n, (top, end) in enumerate(pairwise(self._tops)):
            if top <= y < end:
                hit = self._flows[n].nearest(int((y - top) // self._cells.line), point.x())
                reach = self._cells.gap + 1
                if hit is None or not self.box(n, hit).adjusted(-reach, -99, reach, 99).contains(point.x(), y):
                    return n, None
                return n, hit
        return None

    # -- drawing -----------------------------------------------------------------------------------------------------

    def paint(self, painter: QPainter, area: QRect) -> None:
        painter.fillRect(area, self.viewport().palette().color(self.viewport().backgroundRole()))
        painter.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        shift = self.verticalScrollBar().value()
        painter.translate(0, -shift)
        bottom = shift + self.viewport().height()
        for n, (top, end) in enumerate(pairwise(self._tops)):
            if end >= shift and top <= bottom:
                self._paint_row(painter, n, shift, bottom)

    def _paint_row(self, painter: QPainter, n: int, shift: float, bottom: float) -> None:
        """Paint the visible lines of a row, keeping its number and notes in view."""
        rows, cells, places, row = self.rows, self._cells, self._flows[n], int(self.rows.index[n])
        top, end = self._tops[n], self._tops[n + 1]
        selected = self._selected[1] if self._selected and self._selected[0] == row else None
        if selected is not None:
            band = QRectF(0, top - 2, self.viewport().width(), end - top)
            painter.fillRect(band, cells.theme.colour("surface"))
        head = min(max(top, shift + 2), end - cells.line)
        name = str(row + 1) if rows.names is None else rows.names[n]
        cells.paint_name(painter, QRectF(0, head, cells.label - cells.glyph, cells.height), name)
        self._paint_notes(painter, n, head)
        painter.setFont(cells.mono)
        film = self._moment
        written = len(rows.texts[n]) if film is None else film.written
        pushed = 1.0 if film is None else film.pushed
        if film is not None and film.fork is not None and film.fork < len(rows.texts[n]):
            cells.light(painter, self.box(n, film.fork))
        first = max(int((shift - top) // cells.line), 0)
        last = min(int((bottom - top) // cells.line), len(places.starts) - 1)
        share, clipped, texts = rows.share[n].tolist(), rows.clipped[n].tolist(), rows.texts[n]
        for line in range(first, last + 1):
            y = top + line * cells.line
            for i in places.tokens(line):
                if i >= written:
                    break
                box = QRectF(places.left[i], y, places.width[i], cells.height)
                cells.paint(
                    painter,
                    box,
                    texts[i],
                    share[i] * pushed,
                    signed=rows.signed,
                    clipped=clipped[i] and pushed == 1.0,
                    dead=rows.dead and pushed > 0,
                    counts=rows.counts is None or rows.counts[n][i],
                )
        if selected is not None and selected < len(texts):
            cells.ring(painter, self.box(n, selected))

    def _paint_notes(self, painter: QPainter, n: int, y: float) -> None:
        """Paint the revealed notes next to a completion, with a growing bar under its advantage."""
        rows, cells, film = self.rows, self._cells, self._moment
        notes = rows.notes[n]
        place = QRectF(self._beside, y, 0, cells.height)
        if film is None:
            cells.paint_notes(painter, place, notes, self._columns)
            return
        known = 0 if n >= film.scored else rows.scored
        if film.advantage > 0:
            known = len(notes) if film.pushed > 0 else rows.scored + 1
        cells.paint_notes(painter, place, notes[:known], self._columns)
        if rows.bars is not None and film.advantage > 0 and rows.scored < len(self._columns):
            left = self._beside + sum(self._columns[: rows.scored])
            space = QRectF(left, y + cells.height - 3, self._columns[rows.scored] - BETWEEN, 3)
            cells.bar(painter, space, float(rows.bars[n]) * film.advantage)

    # -- input -------------------------------------------------------------------------------------------------------

    def viewportEvent(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() is QEvent.Type.ToolTip:
            hit = self._at(QPointF(event.pos()))
            QToolTip.showText(event.globalPos(), plain_tip(self.rows.tip(*hit) if hit else ""), self.viewport())
            return True
        return super().viewportEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        hit = self._at(event.position())
        if hit:
            self.chosen.emit(int(self.rows.index[hit[0]]), hit[1] or 0)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        hit = self._at(event.position())
        if hit:
            self.activated.emit(int(self.rows.index[hit[0]]), hit[1] or 0)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not len(self.rows.index):
            super().keyPressEvent(event)
            return
        row, token = self._selected or (int(self.rows.index[0]), 0)
        n = self.place_of(row) or 0
        match event.key():
            case Qt.Key.Key_Left:
                self._choose(n, token - 1)
            case Qt.Key.Key_Right:
                self._choose(n, token + 1)
            case Qt.Key.Key_Up:
                self._choose(n - 1, token)
            case Qt.Key.Key_Down:
                self._choose(n + 1, token)
            case Qt.Key.Key_PageUp:
                self.turned.emit(-1)
            case Qt.Key.Key_PageDown:
                self.turned.emit(1)
            case Qt.Key.Key_Return | Qt.Key.Key_Enter:
                self.activated.emit(row, token)
            case _:
                super().keyPressEvent(event)

    def _choose(self, n: int, token: int) -> None:
        n = min(max(n, 0), len(self.rows.index) - 1)
        self.chosen.emit(int(self.rows.index[n]), min(max(token, 0), max(len(self.rows.texts[n]) - 1, 0)))

    def explain_current(self) -> None:
        if len(self.rows.index):
            self.activated.emit(*(self._selected or (int(self.rows.index[0]), 0)))

    def _reveal(self, row: int, token: int) -> None:
        for n, drawn in enumerate(self.rows.index):
            if drawn == row and token < len(self.rows.texts[n]):
                bar, box = self.verticalScrollBar(), self.box(n, token)
                lowest = round(box.bottom() + TOP - self.viewport().height())
                bar.setValue(min(max(bar.value(), lowest), round(box.top() - TOP)))

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        if self._selected is None and len(self.rows.index):
            self.chosen.emit(int(self.rows.index[0]), 0)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._laid = ()
        self._lay_out()
