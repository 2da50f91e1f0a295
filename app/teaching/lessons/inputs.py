"""Inputs of a prediction: the choice among several options, and a number as a mark on a scale or as a ghost bar.

Left, Right and Space control the lesson; Up, Down, digits and Return control the prediction.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetrics, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.plotting.ranges import ticks
from app.teaching.lessons.readable import readable
from app.theme.painting import CENTRE, RIGHT, frame, painter_of, write
from app.theme.styled import Styled
from app.theme.tokens import RADIUS, Theme
from grpo_core.teaching.lessons import Choice
from grpo_core.text import tr

Key = Qt.Key


class Input(Styled, QWidget):
    """Base class of all prediction inputs.

    Attributes:
        open: whether the guess can be changed.
        guess: the guess; None before one is given.
        value: the run's answer; None before it is known.

    Signals:
        placed: emitted when the guess is confirmed with Return or a double click.
        changed: emitted when the guess changes.
    """

    placed = Signal()
    changed = Signal()

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # in any language
        self.open = True
        self.guess: float | None = None
        self.value: float | None = None
        self.setAccessibleName(name)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)

    def set_look(self, theme: Theme, scale: float) -> None:
        super().set_look(theme, scale)
        self.setFont(theme.font("body", scale * 1.15))

    def close_with(self, guess: float | None, value: float | None) -> None:
        """Show a placed guess, None if the question was skipped, and the run's answer. Accept no further input."""
        self.guess = self.guess if guess is None else guess
        self.open, self.value = False, value
        self.setCursor(Qt.CursorShape.ArrowCursor)
        self.update()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent) and self.wants(event):
            event.accept()  # handled before commands with the same key
            return True
        return super().event(event)

    def wants(self, press: QKeyEvent) -> bool:
        """Return whether a key press is for this widget rather than for a command."""
        plain = not press.modifiers() & ~(Qt.KeyboardModifier.ShiftModifier | Qt.KeyboardModifier.KeypadModifier)
        return self.open and plain and press.key() in (Key.Key_Up, Key.Key_Down, Key.Key_Return, Key.Key_Enter)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not self.wants(event):
            super().keyPressEvent(event)
        elif event.key() in (Key.Key_Return, Key.Key_Enter):
            self._confirm()
        elif event.key() in (Key.Key_Up, Key.Key_Down):
            self._step(up=event.key() == Key.Key_Up)
        else:
            self._type(event)

    @abstractmethod
    def _step(self, *, up: bool) -> None:
        """Change the guess by one step."""

    @abstractmethod
    def _type(self, press: QKeyEvent) -> None:
        """Change the guess by another key that this widget :meth:`wants`."""

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self._confirm()

    def _confirm(self) -> None:
        if self.open and self.guess is not None:
            self.placed.emit()

    def tell(self, what: str) -> None:
        """Announce the guess to screen readers."""
        self.setAccessibleDescription(what)
        self.changed.emit()
        self.update()

    def ring(self, painter: QPainter) -> None:
        """Paint the focus frame if this widget has the keyboard focus."""
        if self.hasFocus() and self.open:
            frame(painter, QRectF(self.rect()).adjusted(1, 1, -1, -1), self.theme.ring, radius=RADIUS)


class Options(Input):
    """A choice among several options, listed one below the other.

    Args:
        options: the options, by the guess that stands for each.
        down: index of the option that the Down key chooses while none is chosen; the Up key chooses the first.
    """

    def __init__(self, name: str, options: Mapping[int, Choice], *, down: int = 0) -> None:
        super().__init__(name)
        self._guesses, self._options, self._down = [*options], [*options.values()], down

    @property
    def _chosen(self) -> int | None:
        """Index of the chosen option. None until one is chosen."""
        return None if self.guess is None else self._guesses.index(round(self.guess))

    def choose(self, place: int) -> None:
        """Choose the option with this index."""
        place = min(max(place, 0), len(self._options) - 1)
        self.guess = float(self._guesses[place])
        pattern = tr("{texts}, {chosen} of {count}")
        self.tell(pattern.format(texts=self._options[place].text, chosen=place + 1, count=len(self._options)))

    @property
    def line(self) -> int:
        """Height of one option in pixels."""
        return round(self.fontMetrics().height() * 1.55)

    def sizeHint(self) -> QSize:
        wide = max(self.fontMetrics().horizontalAdvance(option.text) for option in self._options)
        return QSize(wide + 4 * self.line, self.line * len(self._options) + 8)

    def minimumSizeHint(self) -> QSize:
        return QSize(self.line * 4, self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, theme = painter_of(self), self.theme
        for place, option in enumerate(self._options):
            row = QRectF(4, 4 + place * self.line, self.width() - 8, self.line).adjusted(1, 1, -1, -1)
            chosen, right = place == self._chosen, self.value is not None and self.value in option
            if chosen or right:
                line = Qt.PenStyle.SolidLine if right else Qt.PenStyle.DashLine
                pen = QPen(theme.colour("entropy" if right else "muted"), theme.ring_width / 1.5, line)
                frame(painter, row, pen, theme.faint("text", 0.05), RADIUS)
            font = theme.font("strong" if chosen or right else "body", self.factor * 1.15)
            ink = theme.colour("text") if self.value is None or right or chosen else theme.ink("muted")
            inside = row.adjusted(self.line * 0.9, 0, -self.line * 0.2, 0)
            write(painter, inside, option.text, font, ink, elided=True)
            small, muted = theme.font("digits", self.factor), theme.ink("muted")
            number = QRectF(row.left(), row.top(), self.line * 0.9, row.height())
            write(painter, number, str(place + 1), small, muted, CENTRE)
            if self.value is not None and (right or chosen):
                write(painter, inside, _who(right=right, chosen=chosen), small, muted, RIGHT)
        self.ring(painter)

    def wants(self, press: QKeyEvent) -> bool:
        return super().wants(press) or (self.open and press.text() in "123456789" and bool(press.text()))

    def _step(self, *, up: bool) -> None:
        first, step = (0, -1) if up else (self._down, 1)
        self.choose(first if self._chosen is None else self._chosen + step)

    def _type(self, press: QKeyEvent) -> None:
        if int(press.text()) <= len(self._options):
            self.choose(int(press.text()) - 1)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        place = (event.position().toPoint().y() - 4) // self.line
        if self.open and 0 <= place < len(self._options):
            self.choose(place)


def _who(*, right: bool, chosen: bool) -> str:
    """Return a label that says whose answer an option is: the run's, the learner's, or both."""
    if right and chosen:
        return tr("this run and you")
    return tr("this run") if right else tr("you")


STEPS = 50
"""Number of key presses from one end of the scale to the other."""
GRAIN = 200
"""Number of positions on the scale at which a drag can stop."""
_TYPED = "0123456789.,-"


class Value(Input):
    """A number, given by dragging a mark along a scale or the height of a ghost bar, or by typing.

    Args:
        bar: whether to show a ghost bar rather than a mark on a line.
        form: displayed form, one of ``grpo_core.teaching.lessons.SHOWN``; percentages are typed as such, and counts are
            integers.

    Attributes:
        hint: whether to show how to place a guess.
    """

    def __init__(self, name: str, low: float, high: float, *, bar: bool = False, form: str = "digits") -> None:
        super().__init__(name)
        self.low, self.high, self.bar, self.form = low, high, bar, form
        self.hint = True
        self._typed = ""

    def put(self, guess: float) -> None:
        """Move the mark to ``guess``, clamped to the scale."""
        guess = min(max(guess, self.low), self.high)
        self.guess = float(round(guess)) if self.form == "count" else guess
        self.tell(readable(self.guess, self.form))

    # -- drawing -------------------------------------------------------------------------------------------------------

    def sizeHint(self) -> QSize:
        line = self.fontMetrics().height()
        return QSize(line * (9 if self.bar else 20), round(line * (7.0 if self.bar else 4.4)))

    def minimumSizeHint(self) -> QSize:
        return QSize(self.sizeHint().width() // 2, self.sizeHint().height())

    def _track(self) -> tuple[QPointF, QPointF]:
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
        painter, theme = painter_of(self), self.theme
        self._paint_scale(painter)
        if self.value is not None and not math.isnan(self.value):
            self._paint_mark(painter, self.value, tr("this run"), below=False)
        if self.guess is not None:
            self._paint_mark(painter, self.guess, tr("you") if self.value is not None else "", below=True)
        elif self.open and self.hint:
            place, right = QRectF(self.rect()).adjusted(0, 2, -8, 0), int(Qt.AlignmentFlag.AlignRight)
            write(
                painter, place, tr("drag, ▲ ▼, or type"), theme.font("digits", self.factor), theme.ink("muted"), right
            )
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

    def _step(self, *, up: bool) -> None:
        self._typed = ""
        step = (self.high - self.low) / STEPS
        step = max(1, round(step)) if self.form == "count" else step
        start = (self.low + self.high) / 2 if self.guess is None else self.guess
        self.put(round(start + (step if up else -step), 12))

    def _type(self, press: QKeyEvent) -> None:
        self._typed = self._typed[:-1] if press.key() == Key.Key_Backspace else self._typed + press.text()
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
