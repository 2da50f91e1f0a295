"""Input of a predicted number: a mark dragged along a scale, or the height of a ghost bar."""

from __future__ import annotations

import math

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetrics, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.plotting.ranges import ticks
from app.teaching.lessons.inputs import Input
from app.teaching.lessons.readable import readable
from grpo_core.text import tr

Key = Qt.Key
STEPS = 50
"""Number of key presses from one end of the scale to the other."""
GRAIN = 200
"""Number of positions on the scale at which a drag can stop."""
_TYPED = "0123456789.,-"


class Value(Input):
    """A number, given by dragging a mark along a scale or the height of a ghost bar, or by typing.

    Args:
        name: name of the number.
        low, high: the ends of the scale.
        bar: whether to show a ghost bar rather than a mark on a line.
        form: displayed form, one of ``grpo_core.teaching.lessons.SHOWN``; percentages are typed as such, and counts are
            integers.
        parent: the Qt parent.

    Attributes:
        guess: the number at the mark; None before one is given.
        value: the run's value; None before it is known.
        hint: whether to show how to place a guess.
    """

    def __init__(
        self,
        name: str,
        low: float,
        high: float,
        bar: bool = False,
        *,
        form: str = "digits",
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(name, parent)
        self.low, self.high, self.bar, self.form = low, high, bar, form
        self.guess: float | None = None
        self.value: float | None = None
        self.hint = True
        self._typed = ""
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def put(self, guess: float) -> None:
        """Move the mark to ``guess``, clamped to the scale."""
        guess = min(max(guess, self.low), self.high)
        self.guess = float(round(guess)) if self.form == "count" else guess
        self.tell(readable(self.guess, self.form))

    def close_with(self, value: float) -> None:
        self.value = value
        super().close_with(value)

    # -- drawing -------------------------------------------------------------------------------------------------------

    def sizeHint(self) -> QSize:
        line = self.fontMetrics().height()
        return QSize(line * (9 if self.bar else 20), round(line * (7.0 if self.bar else 4.4)))

    def minimumSizeHint(self) -> QSize:
        return QSize(self.sizeHint().width() // 2, self.sizeHint().height())

    def _track(self) -> tuple[QPointF, QPointF]:
        """Return the low and the high end of the track."""
        line = self.fontMetrics().height()
        if self.bar:
            middle = line * 3.4
            return QPointF(middle, self.height() - line * 0.8), QPointF(middle, line * 1.1)
        y = self.height() * 0.52
        return QPointF(line * 1.5, y), QPointF(self.width() - line * 1.5, y)

    def _at(self, number: float) -> QPointF:
        low, high = self._track()
        share = (min(max(number, self.low), self.high) - self.low) / (self.high - self.low)
        return low + (high - low) * share

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, theme = QPainter(self), self.theme
        painter.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_scale(painter)
        if self.value is not None and not math.isnan(self.value):
            self._paint_mark(painter, self.value, tr("this run"), below=False)
        if self.guess is not None:
            self._paint_mark(painter, self.guess, tr("you") if self.value is not None else "", below=True)
        elif self.open and self.hint:
            painter.setPen(theme.ink("muted"))
            painter.setFont(theme.font("digits", self.factor))
            painter.drawText(self.rect().adjusted(0, 2, -8, 0), Qt.AlignmentFlag.AlignRight, tr("drag, ▲ ▼, or type"))
        self.ring(painter)

    def _paint_scale(self, painter: QPainter) -> None:
        theme, (low, high) = self.theme, self._track()
        painter.setPen(QPen(theme.colour("muted"), max(theme.line_width, 1.2 * self.factor)))
        painter.drawLine(low, high)
        painter.setFont(theme.font("digits", self.factor))
        metrics = QFontMetrics(painter.font())
        for tick in ticks(self.low, self.high, 6):
            at = self._at(tick)
            text = readable(tick, self.form)
            wide = metrics.horizontalAdvance(text)
            painter.setPen(theme.ink("muted"))
            if self.bar:
                painter.drawText(at + QPointF(-wide - 8 * self.factor, metrics.ascent() / 2.6), text)
                painter.drawLine(at - QPointF(3 * self.factor, 0), at)
            else:
                painter.drawText(at + QPointF(-wide / 2, metrics.ascent() + 8 * self.factor), text)
                painter.drawLine(at, at + QPointF(0, 3 * self.factor))

    def _paint_mark(self, painter: QPainter, number: float, who: str, *, below: bool) -> None:
        """Paint a bar from the low end, or a mark on the line: dashed and hollow for a guess, solid for the run."""
        theme, at, size = self.theme, self._at(number), self.fontMetrics().height()
        guess = below
        line = Qt.PenStyle.DashLine if guess else Qt.PenStyle.SolidLine
        painter.setPen(QPen(theme.colour("text" if guess else "accent"), theme.ring_width, line))
        painter.setBrush(Qt.BrushStyle.NoBrush if guess else theme.colour("accent"))
        text = f"{who} {readable(number, self.form)}".strip()
        if self.bar:
            left = at.x() + size * (0.5 if guess else 2.1)
            zero = self._at(0.0 if self.low <= 0 <= self.high else self.low).y()
            painter.drawRect(QRectF(left, min(at.y(), zero), size * 1.3, abs(zero - at.y())))
            place = QPointF(at.x() + size * 3.9, min(max(at.y(), size), self.height() - size * 0.4))
            if not guess and self.guess is not None and abs(self._at(self.guess).y() - at.y()) < size:
                place.setY(place.y() + (size if self._at(self.guess).y() <= at.y() else -size) * 0.9)
        elif guess:
            painter.drawEllipse(at, size * 0.34, size * 0.34)
            place = at + QPointF(0, -size * 0.62)
        else:
            painter.drawPolygon([at, at + QPointF(size * 0.3, size * 0.5), at + QPointF(-size * 0.3, size * 0.5)])
            place = at + QPointF(0, size * 1.75)
        painter.setFont(theme.font("strong", self.factor))
        painter.setPen(theme.colour("text") if guess else theme.ink("accent"))
        wide = painter.fontMetrics().horizontalAdvance(text)
        if not self.bar:
            place.setX(min(max(place.x() - wide / 2, 2), self.width() - wide - 2))
        painter.drawText(place, text)

    # -- input ---------------------------------------------------------------------------------------------------------

    def wants(self, press: QKeyEvent) -> bool:
        typed = bool(press.text()) and press.text() in _TYPED
        return super().wants(press) or (self.open and (typed or press.key() == Key.Key_Backspace))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not self.wants(event):
            super().keyPressEvent(event)
        elif event.key() in (Key.Key_Return, Key.Key_Enter):
            if self.guess is not None:
                self.placed.emit()
        elif event.key() in (Key.Key_Up, Key.Key_Down):
            self._typed = ""
            step = (self.high - self.low) / STEPS
            step = max(1, round(step)) if self.form == "count" else step
            start = (self.low + self.high) / 2 if self.guess is None else self.guess
            self.put(round(start + (step if event.key() == Key.Key_Up else -step), 12))
        else:
            self._typed = self._typed[:-1] if event.key() == Key.Key_Backspace else self._typed + event.text()
            try:
                self.put(float(self._typed.replace(",", ".")) / (100 if self.form == "percent" else 1))
            except ValueError:  # not a complete number yet, such as “−” or “.”
                self.guess = None
                self.tell(self._typed)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self.mouseMoveEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if not self.open:
            return
        self._typed = ""
        (low, high), at = self._track(), event.position()
        share = (low.y() - at.y()) / (low.y() - high.y()) if self.bar else (at.x() - low.x()) / (high.x() - low.x())
        span = self.high - self.low
        self.put(round((self.low + share * span) / span * GRAIN) / GRAIN * span)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if self.open and self.guess is not None:
            self.placed.emit()
