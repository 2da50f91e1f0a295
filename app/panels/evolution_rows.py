"""Fixed prompts as rows: the answer at the update shown, and a strip of all updates, right above and wrong below."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QFontMetricsF, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from app.theme.labels import plain_tip
from app.theme.tokens import Theme
from app.workspace.answers import GLYPHS
from app.workspace.evolution import Change, Evolution, Mark
from grpo_core.text import tr

LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
COLUMN = 2.0
"""Pixels of the narrowest column of a strip."""


class EvolutionRows(QWidget):
    """One row a prompt: the prompt, its strip, its answer at the cursor.

    Up and Down choose a prompt, Left and Right go to where its answer changed.

    Signals:
        jumped: show this update.
        chosen: this prompt (its place).
    """

    jumped = Signal(int)
    chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._evolution: Evolution | None = None
        self._theme: Theme | None = None
        self._scale = 1.0
        self._cursor = 0
        self._selected = 0
        self._now: Sequence[Change | None] = ()
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(tr("Answers to fixed prompts"))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMouseTracking(True)

    def sizeHint(self) -> QSize:
        return QSize(420, self.minimumHeight())

    def show_rows(
        self,
        evolution: Evolution,
        now: Sequence[Change | None],
        cursor: int,
        selected: int,
        theme: Theme,
        scale: float,
    ) -> None:
        """Draw ``evolution`` with update ``cursor`` marked, whose answers are ``now``."""
        self._evolution, self._now, self._cursor, self._selected = evolution, now, cursor, selected
        self._theme, self._scale = theme, scale
        self.setMinimumHeight(round(self.line * len(evolution.prompts)) + 8)
        self.setAccessibleDescription(
            "; ".join(
                f"{prompt} {change.text} {change.verdict.words}"
                for prompt, change in zip(evolution.prompts, now, strict=True)
                if change
            )
        )
        self.update()

    @property
    def line(self) -> float:
        """Height of a row."""
        assert self._theme is not None
        return QFontMetricsF(self._theme.font("mono", self._scale)).height() * 1.35

    def _columns(self) -> tuple[QRectF, QRectF, QRectF]:
        """Prompt, strip and answer of the first row."""
        assert self._theme is not None and self._evolution is not None
        glyph = QFontMetricsF(self._theme.font("mono", self._scale)).horizontalAdvance("0")
        longest = max((len(p) for p in self._evolution.prompts), default=4)
        prompts = min(longest * glyph + 24, self.width() * 0.3)
        answers = min(max(glyph * 34, self.width() * 0.36), self.width() * 0.5)
        strip = max(self.width() - prompts - answers - 24, 20.0)
        return (
            QRectF(12, 4, prompts - 20, self.line),
            QRectF(prompts, 4, strip, self.line),
            QRectF(prompts + strip + 12, 4, self.width() - prompts - strip - 16, self.line),
        )

    def strip(self, place: int) -> QRectF:
        """Where the strip of prompt ``place`` lies."""
        return self._columns()[1].translated(0, place * self.line)

    # -- drawing -----------------------------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._theme is None or self._evolution is None:
            return
        painter = QPainter(self)
        painter.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        for place, prompt in enumerate(self._evolution.prompts):
            self._paint_row(painter, place, prompt)
        head = self._evolution.run.head
        if self._cursor and head:
            strip = self.strip(0)
            x = strip.left() + strip.width() * (self._cursor - 0.5) / head
            painter.setPen(QPen(self._theme.colour("text"), 1.5))
            painter.drawLine(QPointF(x, 4), QPointF(x, 4 + self.line * len(self._evolution.prompts)))

    def _paint_row(self, painter: QPainter, place: int, prompt: str) -> None:
        assert self._theme is not None and self._evolution is not None
        theme = self._theme
        prompt_box, strip, answer = (box.translated(0, place * self.line) for box in self._columns())
        if place == self._selected:
            band = QRectF(4, prompt_box.top(), self.width() - 8, self.line)
            painter.fillRect(band, theme.colour("surface"))
            painter.fillRect(QRectF(4, prompt_box.top(), 3, self.line), theme.colour("selection"))
            if self.hasFocus():
                painter.setPen(QPen(theme.colour("selection"), theme.ring_width))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.drawRect(band.adjusted(0, 1, 0, -1))
        painter.setFont(theme.font("mono", self._scale))
        painter.setPen(theme.colour("text"))
        painter.drawText(prompt_box, LEFT, _elided(painter, prompt, prompt_box.width()))
        self._paint_strip(painter, strip, self._evolution.columns(place, max(int(strip.width() / COLUMN), 1)))
        self._paint_answer(painter, answer, self._now[place])

    def _paint_strip(self, painter: QPainter, strip: QRectF, columns: np.ndarray) -> None:
        """Right answers fill the upper part, wrong ones outline the lower; a tick where the answer became another."""
        assert self._theme is not None
        theme, height = self._theme, strip.height()
        width = strip.width() / max(len(columns), 1)

        def box(span: tuple[int, int], top: float, tall: float) -> QRectF:
            left = strip.left() + span[0] * width
            return QRectF(left, strip.top() + height * top, (span[1] - span[0]) * width, height * tall)

        painter.setPen(Qt.PenStyle.NoPen)
        for mark, name, top, tall in ((Mark.RIGHT, "push_up", 0.16, 0.34), (Mark.UNTOLD, "reference", 0.45, 0.1)):
            painter.setBrush(theme.colour(name))
            painter.drawRects([box(span, top, tall) for span in _spans(columns & mark)])
        painter.setPen(QPen(theme.colour("push_down"), 1))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRects([box(span, 0.56, 0.26).adjusted(0.5, 0, -0.5, 0) for span in _spans(columns & Mark.WRONG)])
        painter.setPen(QPen(theme.colour("text"), 1))
        places = strip.left() + np.flatnonzero(columns & Mark.CHANGED) * width
        top, bottom = strip.top() + height * 0.1, strip.top() + height * 0.88
        painter.drawLines([QLineF(x, top, x, bottom) for x in places.tolist()])

    def _paint_answer(self, painter: QPainter, box: QRectF, change: Change | None) -> None:
        assert self._theme is not None
        theme = self._theme
        if change is None:
            painter.setPen(theme.colour("muted"))
            painter.drawText(box, LEFT, "—")
            return
        right = change.verdict.right
        painter.setPen(theme.ink("push_down") if right is False else theme.colour("text" if right else "muted"))
        text = _elided(painter, f"{GLYPHS[right]} {change.text or '(nothing)'}", box.width())
        painter.drawText(box, LEFT, text)
        rest = box.adjusted(QFontMetricsF(painter.font()).horizontalAdvance(text) + 12, 0, 0, 0)
        painter.setFont(theme.font("small", self._scale))
        painter.setPen(theme.colour("muted"))
        if rest.width() > 40 * self._scale:
            painter.drawText(rest, LEFT, _elided(painter, change.verdict.words, rest.width()))

    # -- input -------------------------------------------------------------------------------------------------------

    def _under(self, point: QPointF) -> tuple[int, int]:
        """(prompt, update) under the mouse; −1 and 0 where there is none."""
        if self._evolution is None or self._theme is None:
            return -1, 0
        place, head, strip = int((point.y() - 4) // self.line), self._evolution.run.head, self.strip(0)
        share = (point.x() - strip.left()) / strip.width()
        step = min(int(share * head) + 1, head) if 0 <= share <= 1 else 0
        return place if 0 <= place < len(self._evolution.prompts) else -1, step

    def mousePressEvent(self, event: QMouseEvent) -> None:
        place, step = self._under(event.position())
        if place >= 0:
            self.chosen.emit(place)
            if step:
                self.jumped.emit(step)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Drag along a strip to scrub; otherwise what was said there."""
        place, step = self._under(event.position())
        if event.buttons() & Qt.MouseButton.LeftButton and step:
            self.jumped.emit(step)
        change = self._evolution.at(place, step) if self._evolution and place >= 0 else None
        tooltip = (
            tr("Update {step}: {text} {words}").format(step=step, text=change.text, words=change.verdict.words).rstrip()
            if change
            else ""
        )
        QToolTip.showText(event.globalPosition().toPoint(), plain_tip(tooltip), self)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if self._evolution is None or not self._evolution.prompts:
            super().keyPressEvent(event)
            return
        steps = [change.step for change in self._evolution.changes[self._selected]]
        match event.key():
            case Qt.Key.Key_Down:
                self.chosen.emit(min(self._selected + 1, len(self._evolution.prompts) - 1))
            case Qt.Key.Key_Up:
                self.chosen.emit(max(self._selected - 1, 0))
            case Qt.Key.Key_Right:
                self.jumped.emit(min((s for s in steps if s > self._cursor), default=self._evolution.run.head))
            case Qt.Key.Key_Left:
                self.jumped.emit(max((s for s in steps if s < self._cursor), default=min(1, self._evolution.run.head)))
            case _:
                super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.update()


def _spans(flags: np.ndarray) -> list[tuple[int, int]]:
    """Where ``flags`` is not zero: [(first, behind the last)]."""
    edges = np.flatnonzero(np.diff(flags.astype(bool).astype(np.int8), prepend=0, append=0))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def _elided(painter: QPainter, text: str, width: float) -> str:
    return painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, max(round(width), 0))
