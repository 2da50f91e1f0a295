"""One term of a formula, drawn, with its live value below it: a button that asks where the value comes from."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QWidget

from app.formula.plain import plain_text
from app.formula.render import Picture, picture
from app.theme.labels import plain_tip
from app.theme.tokens import LIGHT, Theme
from grpo_core.formula_term import Term

SPACE = "−0.000"
"""Below each term there is always room for this much, so that nothing moves when digits change."""
ASCENT, DESCENT = 1.165, 0.615
"""Room kept for a formula that waits to be typeset, in sizes of its letters: what the presets take."""


class TermButton(QAbstractButton):
    """One drawn piece. Only those with a key take focus.

    Attributes:
        waits: it has yet to be typeset and shows nothing; its strip says when.
        baseline: pixels from its top to the line that all pieces of its line of the strip are on.
    """

    def __init__(self, term: Term, parent: QWidget) -> None:
        super().__init__(parent)
        self.term, self.value, self.marked = term, "", False
        self.theme, self.factor, self._pixels = LIGHT, 1.0, 18.0
        self.waits, self.baseline = False, 0.0
        self._widest = 0.0
        self._measured: tuple[object, tuple[float, float, float]] | None = None
        if term.key:
            self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
            self.setCursor(Qt.CursorShape.PointingHandCursor)
        else:
            self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
            self.setEnabled(False)
        self._say()

    def apply_style(self, theme: Theme, factor: float, pixels: float) -> None:
        """Other colours, another size."""
        self.theme, self.factor, self._pixels, self._widest = theme, factor, pixels, 0.0
        self.update()

    def set_value(self, value: str) -> bool:
        """Show ``value`` below the piece. Whether it needs more room than before."""
        if value == self.value:
            return False
        before = self.size_needed().width()
        self.value = value
        self._say()
        self.update()
        return self.size_needed().width() > before

    def set_marked(self, marked: bool) -> None:
        """Ring the term, as the one that is being explained."""
        if marked != self.marked:
            self.marked = marked
            self.update()

    def _say(self) -> None:
        name = self.term.name or plain_text(self.term.latex)
        self.setAccessibleName(f"{name} = {self.value}" if self.value else name)
        self.setAccessibleDescription(self.term.help)
        parts = [name + (f" = {self.value}" if self.value else ""), self.term.help]
        self.setToolTip(plain_tip("\n".join(text for text in parts if text) if self.term.key else ""))

    @property
    def drawn(self) -> Picture | None:
        """The picture of the piece."""
        if self.waits:
            return None
        return picture(
            self.term.latex, self._pixels * self.factor, self.theme.ink(self.term.meaning).name(),
            self.devicePixelRatioF(),
        )  # fmt: skip

    @property
    def small(self) -> QFont:
        """The font of the value."""
        return self.theme.font("digits", self.factor)

    @property
    def side(self) -> float:
        """Free room left and right."""
        return (3.0 if self.term.key else 1.0) * self.factor

    def measured(self) -> tuple[float, float, float]:
        """Width with the value's, reach above the baseline, and below it without the value. Layouts ask many times."""
        state = (self.value, self.waits, self.theme, self.factor, self._pixels, self.devicePixelRatioF())
        if self._measured is None or self._measured[0] != state:
            self._measured = state, self._measure()
        return self._measured[1]

    def _measure(self) -> tuple[float, float, float]:
        drawn, small = self.drawn, self.small
        body = QFontMetricsF(self.theme.font("body", self.factor))
        wide = drawn.size.width() if drawn else body.horizontalAdvance(plain_text(self.term.latex))
        if self.term.key:  # with a value or without: the first stages of an update show none
            metrics = QFontMetricsF(small)
            wide = max(wide, metrics.horizontalAdvance(self.value), metrics.horizontalAdvance(SPACE))
        if self.waits:
            ascent, descent = ASCENT * self._pixels * self.factor, DESCENT * self._pixels * self.factor
        elif drawn:
            ascent, descent = drawn.ascent, drawn.size.height() - drawn.ascent
        else:
            ascent, descent = body.ascent(), small.pixelSize() * 0.5
        return wide + 2 * self.side, ascent, descent

    def ascent(self) -> float:
        """The distance that the piece reaches above the baseline."""
        return self.measured()[1]

    def descent(self) -> float:
        """The distance that the piece reaches below the baseline, without its value."""
        return self.measured()[2]

    def explain_current(self) -> None:
        """Ask where the term's value comes from."""
        self.click()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """A click selects, as everywhere."""
        self.setFocus(Qt.FocusReason.MouseFocusReason)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Does nothing: a double click or a key explains the term, a click only selects it."""

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self.explain_current()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.explain_current()
        else:
            super().keyPressEvent(event)

    def size_needed(self) -> QRectF:
        """Width and height of the piece alone, its value's width counted in. Never less than before."""
        wide, ascent, descent = self.measured()
        self._widest = max(self._widest, wide)
        return QRectF(0, 0, self._widest, ascent + descent)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, theme = QPainter(self), self.theme
        painter.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        frame = QRectF(self.rect()).adjusted(1, 1, -1, -1)
        if self.term.key and (self.underMouse() or self.marked):
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.faint("text", 0.07))
            painter.drawRoundedRect(frame, 4, 4)
        if self.marked or self.hasFocus():
            style = Qt.PenStyle.SolidLine if self.marked else Qt.PenStyle.DotLine
            painter.setPen(QPen(theme.colour("selection"), theme.ring_width, style))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(frame, 4, 4)
        drawn, baseline = self.drawn, self.baseline
        if drawn is not None:
            at = QPointF(round((self.width() - drawn.size.width()) / 2), round(baseline - drawn.ascent))
            painter.drawImage(at, drawn.image)
        elif not self.waits:
            painter.setFont(theme.font("body", self.factor))
            painter.setPen(theme.ink(self.term.meaning))
            painter.drawText(QPointF(self.side, baseline), plain_text(self.term.latex))
        if self.term.change:
            self._paint_change(painter, baseline)
        if self.value:
            painter.setFont(self.small)
            painter.setPen(theme.ink("muted"))
            line = QFontMetricsF(self.small).height()
            area = QRectF(0, self.height() - line - 2 * self.factor, self.width(), line)
            painter.drawText(area, int(Qt.AlignmentFlag.AlignCenter), self.value)

    def _paint_change(self, painter: QPainter, baseline: float) -> None:
        """A line through a piece that has gone, a line below one that has come."""
        theme, inside = self.theme, 2 * self.factor
        old = self.term.change == "old"
        y = baseline - 0.3 * self._pixels * self.factor if old else baseline + 0.42 * self._pixels * self.factor
        painter.setPen(QPen(theme.colour("push_down" if old else "accent"), max(1.6 * self.factor, theme.line_width)))
        painter.drawLine(QPointF(inside, y), QPointF(self.width() - inside, y))
