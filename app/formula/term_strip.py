"""A formula made of terms, each with its live value below it and each a door to where that value comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QFont, QFontMetricsF, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QWidget

from app.formula.plain import plain_text
from app.formula.render import Picture, picture, shipped_drawings
from app.theme.labels import plain_tip
from app.theme.tokens import LIGHT, Theme
from grpo_core.formula_term import Term
from grpo_core.text import tr

ROOM = "−0.000"
"""Below each term there is always room for this much, so that nothing moves when digits change."""
SMALLER = (1.0, 0.95, 0.9, 0.85, 0.8)
"""Sizes of the letters, of those they have where there is room, that are tried before a formula takes a second line."""
SMALLEST = (0.75, 0.7, 0.65)
"""The same for a formula that is shown for some seconds in the room of another."""
ASCENT, DESCENT = 1.165, 0.615
"""Room kept for a formula that waits to be typeset, in sizes of its letters: what the presets take."""


class TermButton(QAbstractButton):
    """One drawn piece; only those with a key take focus."""

    def __init__(self, term: Term, parent: QWidget) -> None:
        super().__init__(parent)
        self.term, self.value, self.marked = term, "", False
        self.theme, self.factor, self._pixels = LIGHT, 1.0, 18.0
        self._widest = 0.0
        self._measured: tuple[object, tuple[float, float, float]] | None = None
        if term.key:
            self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
            self.setCursor(Qt.CursorShape.PointingHandCursor)
        else:
            self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
            self.setEnabled(False)
        self._say()

    def dress(self, theme: Theme, factor: float, pixels: float) -> None:
        """Other colours, another size."""
        self.theme, self.factor, self._pixels, self._widest = theme, factor, pixels, 0.0
        self.update()

    def set_value(self, value: str) -> bool:
        """Show ``value`` below the piece; whether it needs more room than before."""
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
    def waits(self) -> bool:
        """Whether the strip has yet to be typeset."""
        strip = self.parent()
        return isinstance(strip, TermStrip) and strip.waits

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
        """Width with the value's, reach above the baseline, and below it without the value; layouts ask many times."""
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
            wide = max(wide, metrics.horizontalAdvance(self.value), metrics.horizontalAdvance(ROOM))
        if self.waits:
            ascent, descent = ASCENT * self._pixels * self.factor, DESCENT * self._pixels * self.factor
        elif drawn:
            ascent, descent = drawn.ascent, drawn.size.height() - drawn.ascent
        else:
            ascent, descent = body.ascent(), small.pixelSize() * 0.5
        return wide + 2 * self.side, ascent, descent

    def ascent(self) -> float:
        """How far the piece reaches above the baseline."""
        return self.measured()[1]

    def descent(self) -> float:
        """How far the piece reaches below the baseline, without its value."""
        return self.measured()[2]

    def explain_current(self) -> None:
        """Ask where the term's value comes from."""
        self.click()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """A click selects, as everywhere."""
        self.setFocus(Qt.FocusReason.MouseFocusReason)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Explained by a double click, or by a key."""

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self.explain_current()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.explain_current()
        else:
            super().keyPressEvent(event)

    def size_needed(self) -> QRectF:
        """Width and height of the piece alone, its value's width counted in; never less than before."""
        wide, ascent, descent = self.measured()
        self._widest = max(self._widest, wide)
        return QRectF(0, 0, self._widest, ascent + descent)

    def paintEvent(self, event: QPaintEvent) -> None:
        strip = self.parent()
        assert isinstance(strip, TermStrip)
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
        drawn, baseline = self.drawn, strip.line_ascent
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


class TermStrip(QWidget):
    """Terms side by side on one baseline; those that do not fit go to the next line.

    Signals:
        term_activated: the user wants the term with this key explained (double click, E, Return, Space).
        typeset: a strip that has waited is drawn now.

    With ``late`` the room of a formula that is not shipped drawn stays empty until it has been painted once: the first
    formula that a process draws takes some 200 ms, and a window should be there before that.
    """

    term_activated = Signal(str)
    typeset = Signal()

    def __init__(
        self, terms: Sequence[Term] = (), pixels: float = 18.0, parent: QWidget | None = None, *, late: bool = False
    ) -> None:
        super().__init__(parent)
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # in any language
        self.waits = late
        self.theme, self.factor, self._pixels = LIGHT, 1.0, pixels
        self._largest = pixels
        self._fitted: tuple[object, ...] = ()
        self._inside = True
        self.buttons: list[TermButton] = []
        self.line_ascent = 0.0
        self._heights: dict[int, int] = {}
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self.set_terms(terms)

    # -- what panels use ----------------------------------------------------------------------------------------------

    def set_terms(self, terms: Sequence[Term]) -> None:
        """Another formula; the same terms again cost nothing."""
        if [button.term for button in self.buttons] == list(terms):
            return
        for button in self.buttons:
            button.hide()
            button.deleteLater()
        self.buttons = []
        if terms and all(term.latex in shipped_drawings() for term in terms):
            self.waits = False
        for term in terms:
            button = TermButton(term, self)
            button.dress(self.theme, self.factor, self._pixels)
            button.clicked.connect(self._on_clicked)
            button.show()
            self.buttons.append(button)
        self.setAccessibleName(_spoken(terms))
        self._arrange()

    def set_values(self, values: Mapping[str, str]) -> None:
        """The live values by key; a key that is not given shows none."""
        moved = [button.set_value(values.get(button.term.key, "")) for button in self.buttons]
        if any(moved):
            self._arrange()

    def highlight(self, key: str | None) -> None:
        """Mark one term, or none."""
        for button in self.buttons:
            button.set_marked(bool(key) and button.term.key == key)

    def set_look(self, theme: Theme, scale: float) -> None:
        """Other colours, another size."""
        if (theme, scale) != (self.theme, self.factor):
            self.theme, self.factor = theme, scale
            for button in self.buttons:
                button.dress(theme, scale, self._pixels)
            self._arrange()

    def fit(self, width: int) -> None:
        """Letters small enough for one line of ``width`` pixels; of the full size where even the smallest need two."""
        wanted = (width, self.theme, self.factor, self.waits, tuple(button.term for button in self.buttons))
        if wanted == self._fitted:
            return
        self._fitted = wanted
        for share in (*SMALLER, 1.0):
            self._resize(share)
            if sum(button.size_needed().width() for button in self.buttons) <= width:
                break
        self._arrange()

    def fit_in(self, room: QSize) -> bool:
        """Letters small enough for ``room`` on as many lines as it has; whether there are such letters."""
        wanted = (room, self.theme, self.factor, self.waits, tuple(button.term for button in self.buttons))
        if wanted != self._fitted:
            self._fitted = wanted
            self._inside = any(self._fits(share, room) for share in (*SMALLER, *SMALLEST))
            self._arrange()
        return self._inside

    def _fits(self, share: float, room: QSize) -> bool:
        self._resize(share)
        return self._place(room.width(), move=False) <= room.height()

    def _resize(self, share: float) -> None:
        self._pixels = self._largest * share
        for button in self.buttons:
            button.dress(self.theme, self.factor, self._pixels)

    # -- layout -------------------------------------------------------------------------------------------------------

    def _arrange(self) -> None:
        self._heights.clear()
        self._place(self.width(), move=True)
        self.updateGeometry()
        self.update()

    def _place(self, width: int, *, move: bool) -> int:
        """Put the pieces into lines of ``width`` and return the height; without ``move`` only measure it."""
        if not self.buttons:
            return 0
        ascent = max(button.ascent() for button in self.buttons) + 3 * self.factor
        below = max(button.descent() for button in self.buttons)
        valued = any(button.term.key for button in self.buttons)
        high = ascent + below + (QFontMetricsF(self.buttons[0].small).height() if valued else 0.0) + 4 * self.factor
        if move:
            self.line_ascent = ascent
        x, y = 0.0, 0.0
        for n, button in enumerate(self.buttons):
            wide = button.size_needed().width()
            together = wide + self._glued_width(n + 1)
            if x > 0 and x + together > width and not button.term.glue:
                x, y = 0.0, y + high
            if move:
                left, top = round(x), round(y)
                button.setGeometry(left, top, round(x + wide) - left, round(y + high) - top)
            x += wide
        return round(y + high)

    def _glued_width(self, n: int) -> float:
        """Width of the pieces from ``n`` on that stay on the line of the piece before them."""
        wide = 0.0
        for button in self.buttons[n:]:
            if not button.term.glue:
                break
            wide += button.size_needed().width()
        return wide

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place(self.width(), move=True)

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        if width not in self._heights:
            self._heights[width] = self._place(width, move=False)
        return self._heights[width]

    def sizeHint(self) -> QSize:
        wide = sum(button.size_needed().width() for button in self.buttons)
        return QSize(round(wide) + 1, self._place(1_000_000, move=False))

    def minimumSizeHint(self) -> QSize:
        widest = max((button.size_needed().width() for button in self.buttons), default=0.0)
        return QSize(round(widest), self._place(max(self.width(), round(widest)), move=False))

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self.waits:
            QTimer.singleShot(0, self, self._on_painted)

    @Slot()
    def _on_painted(self) -> None:
        if self.waits:
            self.waits = False
            self._arrange()
            self.typeset.emit()

    @Slot()
    def _on_clicked(self) -> None:
        sender = self.sender()
        if isinstance(sender, TermButton) and sender.term.key:
            self.term_activated.emit(sender.term.key)


def _spoken(terms: Sequence[Term]) -> str:
    """The formula as a line of text; what has gone and what has come is said after it."""
    formula = " ".join(plain_text(term.latex) for term in terms if term.change != "old")
    if not any(term.change for term in terms):
        return tr("Formula: {formula}").format(formula=formula)
    old, new = (", ".join(term.name for term in terms if term.change == kind and term.name) for kind in ("old", "new"))
    return tr("Formula, changed: {formula}. Struck out: {old}. New: {new}.").format(
        formula=formula, old=old or tr("nothing"), new=new or tr("nothing")
    )
