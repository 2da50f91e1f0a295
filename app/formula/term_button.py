"""One term of a formula with its live value below, as a button that explains the value."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QWidget

from app.formula.plain import plain_text
from app.formula.render import Picture, picture
from app.theme.labels import plain_tip
from app.theme.painting import CENTRE, frame, painter_of, write
from app.theme.tokens import LIGHT, Theme
from grpo_core.expression import Term

SPACE = "−0.000"
"""String whose width is always reserved below a term, so that nothing moves when digits change."""
ASCENT, DESCENT = 1.165, 0.615
"""Height reserved above and below the baseline for a formula that is not yet typeset, in units of the font size,
taken from the presets.
"""


class TermButton(QAbstractButton):
    """One drawn term. Only terms with a key take the focus.

    Attributes:
        waits: whether the term has yet to be typeset; it stays blank until its strip triggers that.
        baseline: pixels from its top to the common baseline of its line in the strip.
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
        """Set the theme, the scale and the font size in pixels."""
        self.theme, self.factor, self._pixels, self._widest = theme, factor, pixels, 0.0
        self.update()

    def set_value(self, value: str) -> bool:
        """Show ``value`` below the term. Return whether it needs more width than before."""
        if value == self.value:
            return False
        before = self.width_needed()
        self.value = value
        self._say()
        self.update()
        return self.width_needed() > before

    def set_marked(self, marked: bool) -> None:
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
        """The picture of the term, or None if it has yet to be typeset or cannot be drawn."""
        if self.waits:
            return None
        colour = self.theme.ink(self.term.meaning).name()
        return picture(self.term.latex, self._pixels * self.factor, colour, self.devicePixelRatioF())

    @property
    def small(self) -> QFont:
        return self.theme.font("digits", self.factor)

    @property
    def side(self) -> float:
        """Free width on the left and on the right."""
        return (3.0 if self.term.key else 1.0) * self.factor

    def measured(self) -> tuple[float, float, float]:
        """Return the width including the value, the extent above the baseline, and the extent below it without the
        value.

        The result is cached for layouts.
        """
        state = (self.value, self.waits, self.theme, self.factor, self._pixels, self.devicePixelRatioF())
        if self._measured is None or self._measured[0] != state:
            self._measured = state, self._measure()
        return self._measured[1]

    def _measure(self) -> tuple[float, float, float]:
        drawn, small = self.drawn, self.small
        body = QFontMetricsF(self.theme.font("body", self.factor))
        wide = drawn.size.width() if drawn else body.horizontalAdvance(plain_text(self.term.latex))
        if self.term.key:  # whether or not it has a value, since the first stages of an update show none
            metrics = QFontMetricsF(small)
            wide = max(wide, metrics.horizontalAdvance(self.value), metrics.horizontalAdvance(SPACE))
        if self.waits:
            ascent, descent = ASCENT * self._pixels * self.factor, DESCENT * self._pixels * self.factor
        elif drawn:
            ascent, descent = drawn.ascent, drawn.size.height() - drawn.ascent
        else:
            ascent, descent = body.ascent(), small.pixelSize() * 0.5
        return wide + 2 * self.side, ascent, descent

    def explain_current(self) -> None:
        self.click()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Select the term, as a click does everywhere."""
        self.setFocus(Qt.FocusReason.MouseFocusReason)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Do nothing, because a click only selects, and a double click or a key explains the term."""

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self.explain_current()

    def width_needed(self) -> float:
        """Return the width of the term, which fits its value and never shrinks."""
        self._widest = max(self._widest, self.measured()[0])
        return self._widest

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, theme = painter_of(self), self.theme
        inside = QRectF(self.rect()).adjusted(1, 1, -1, -1)
        if self.term.key and (self.underMouse() or self.marked):
            frame(painter, inside, None, theme.faint("text", 0.07), radius=4)
        if self.marked or self.hasFocus():
            style = Qt.PenStyle.SolidLine if self.marked else Qt.PenStyle.DotLine
            frame(painter, inside, QPen(theme.colour("selection"), theme.ring_width, style), radius=4)
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
            line = QFontMetricsF(self.small).height()
            area = QRectF(0, self.height() - line - 2 * self.factor, self.width(), line)
            write(painter, area, self.value, self.small, theme.ink("muted"), CENTRE)

    def _paint_change(self, painter: QPainter, baseline: float) -> None:
        """Paint a line through a removed piece, or a line below a new one."""
        theme, inside = self.theme, 2 * self.factor
        old = self.term.change == "old"
        y = baseline - 0.3 * self._pixels * self.factor if old else baseline + 0.42 * self._pixels * self.factor
        painter.setPen(QPen(theme.colour("push_down" if old else "accent"), max(1.6 * self.factor, theme.line_width)))
        painter.drawLine(QPointF(inside, y), QPointF(self.width() - inside, y))
