"""A formula of terms, each with its live value below it and a link to the value's explanation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QFontMetricsF, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.clock import soon
from app.formula.plain import plain_text, spoken_formula
from app.formula.render import shipped_drawings
from app.formula.term_button import TermButton
from app.theme.painting import CENTRE, painter_of, write
from app.theme.styled import Styled
from grpo_core.expression import Term
from grpo_core.text import tr

PIXELS = 18.0
"""Largest font size of a formula in pixels, at 100 %."""
SMALLER = (1.0, 0.95, 0.9, 0.85, 0.8)
"""Font scales tried before a formula is wrapped onto a second line."""
GAP = 4
"""Pixels at 100 % between two names."""
SMALLEST = (0.75, 0.7, 0.65)
"""Further font scales for a formula that temporarily replaces another."""


class TermStrip(Styled, QWidget):
    """Terms side by side on one baseline, wrapped onto further lines if needed.

    Signals:
        term_activated: explain the term with this key (double click, E, Return, Space).
        typeset: a waiting strip has been typeset.

    With ``late``, a formula without a shipped drawing stays blank until it has been painted once: the first formula
    drawn by a process takes about 200 ms, and the window should appear before that.
    """

    term_activated = Signal(str)
    typeset = Signal()

    def __init__(self, terms: Sequence[Term] = (), parent: QWidget | None = None, *, late: bool = False) -> None:
        super().__init__(parent)
        self._worded = False
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # in any language
        self.waits = late
        self._pixels = PIXELS
        self._fitted: tuple[object, ...] = ()
        self._inside = True
        self.buttons: list[TermButton] = []
        self._heights: dict[int, int] = {}
        self._words: list[tuple[str, QRectF]] | None = None
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self.set_terms(terms)

    # -- interface for panels ------------------------------------------------------------------------------------------

    def set_terms(self, terms: Sequence[Term]) -> None:
        """Show the formula consisting of ``terms``. Do nothing if it is already shown."""
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
            button.waits = self.waits
            button.apply_style(self.theme, self.factor, self._pixels)
            button.clicked.connect(self._on_clicked)
            button.show()
            self.buttons.append(button)
        self.setAccessibleName(_spoken(terms))
        self._arrange()

    def set_values(self, values: Mapping[str, str]) -> None:
        """Set the live values by key. A term whose key is missing shows none."""
        moved = [button.set_value(values.get(button.term.key, "")) for button in self.buttons]
        if any(moved):
            self._arrange()

    def show_words(self, on: bool) -> None:
        """Set whether the name of each term is below its value, if there is room between its neighbours."""
        if on != self._worded:
            self._worded = on
            self._arrange()

    def highlight(self, key: str | None) -> None:
        for button in self.buttons:
            button.set_marked(bool(key) and button.term.key == key)

    def _apply_style(self) -> None:
        for button in self.buttons:
            button.apply_style(self.theme, self.factor, self._pixels)
        self._arrange()

    def fit(self, width: int) -> None:
        """Choose the largest font size at which the formula fits on one line of ``width`` pixels, or the full size
        if it never fits.
        """
        wanted = (width, self.theme, self.factor, self.waits, tuple(button.term for button in self.buttons))
        if wanted == self._fitted:
            return
        self._fitted = wanted
        for share in (*SMALLER, 1.0):
            self._resize(share)
            if sum(button.width_needed() for button in self.buttons) <= width:
                break
        self._arrange()

    def fit_in(self, space: QSize) -> bool:
        """Choose a font size at which the formula fits into ``space`` on as many lines as needed. Return whether it
        fits.
        """
        wanted = (space, self.theme, self.factor, self.waits, tuple(button.term for button in self.buttons))
        if wanted != self._fitted:
            self._fitted = wanted
            self._inside = any(self._fits(share, space) for share in (*SMALLER, *SMALLEST))
            self._arrange()
        return self._inside

    def _fits(self, share: float, space: QSize) -> bool:
        self._resize(share)
        return self._place(space.width(), move=False) <= space.height()

    def _resize(self, share: float) -> None:
        self._pixels = PIXELS * share
        for button in self.buttons:
            button.apply_style(self.theme, self.factor, self._pixels)

    # -- layout -------------------------------------------------------------------------------------------------------

    def _arrange(self) -> None:
        self._heights.clear()
        self._place(self.width(), move=True)
        self.updateGeometry()
        self.update()

    def _place(self, width: int, *, move: bool) -> int:
        """Return the height of the pieces in lines of ``width``. If ``move``, also place them."""
        if not self.buttons:
            return 0
        ascent = max(button.measured()[1] for button in self.buttons) + 3 * self.factor
        below = max(button.measured()[2] for button in self.buttons)
        valued = any(button.term.key for button in self.buttons)
        line = QFontMetricsF(self.buttons[0].small).height()
        words = line if valued and self._worded else 0.0
        high = ascent + below + (line if valued else 0.0) + words + 4 * self.factor
        if move:
            self._words = None
            for button in self.buttons:
                button.baseline = ascent
        x, y = 0.0, 0.0
        for n, button in enumerate(self.buttons):
            wide = button.width_needed()
            together = wide + self._glued_width(n + 1)
            if x > 0 and x + together > width and not button.term.glue:
                x, y = 0.0, y + high
            if move:
                left, top = round(x), round(y)
                button.setGeometry(left, top, round(x + wide) - left, round(y + high - words) - top)
            x += wide
        return round(y + high)

    def _glued_width(self, n: int) -> float:
        """Return the width of the pieces from ``n`` on that must stay on the same line as the piece before them."""
        wide = 0.0
        for button in self.buttons[n:]:
            if not button.term.glue:
                break
            wide += button.width_needed()
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
        wide = sum(button.width_needed() for button in self.buttons)
        return QSize(round(wide) + 1, self._place(1_000_000, move=False))

    def minimumSizeHint(self) -> QSize:
        widest = max((button.width_needed() for button in self.buttons), default=0.0)
        return QSize(round(widest), self._place(max(self.width(), round(widest)), move=False))

    def words(self) -> list[tuple[str, QRectF]]:
        """Return the names below the values, each of them once, and their rectangles."""
        if self._words is None:
            placed = dict[str, QRectF]()
            for button in self.buttons if self._worded else ():
                word, below, metrics = _word(button.term), button.geometry(), QFontMetricsF(button.small)
                area = QRectF(0, below.bottom(), metrics.horizontalAdvance(word) + GAP * self.factor, metrics.height())
                area.moveLeft(max(below.center().x() - area.width() / 2, 0.0))
                before = max((other.right() for other in placed.values() if other.top() == area.top()), default=0.0)
                room = before - area.left() <= area.width() / 4
                area.moveLeft(max(area.left(), before))
                if word and word not in placed and room:
                    placed[word] = area
            self._words = [*placed.items()]
        return self._words

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        painter = painter_of(self, smooth=False)
        for word, area in self.words():
            write(painter, area, word, self.buttons[0].small, self.theme.ink("muted"), CENTRE)
        if self.waits:
            soon(self, self._on_painted)

    @Slot()
    def _on_painted(self) -> None:
        if self.waits:
            self.waits = False
            for button in self.buttons:
                button.waits = False
            self._arrange()
            self.typeset.emit()

    @Slot()
    def _on_clicked(self) -> None:
        sender = self.sender()
        if isinstance(sender, TermButton) and sender.term.key:
            self.term_activated.emit(sender.term.key)


def _word(term: Term) -> str:
    """Return the name of a term without its symbol, or the symbol of a number. Empty for a connecting piece."""
    symbol = plain_text(term.latex)
    if symbol.replace(".", "").isdigit():
        return term.name.split(" ")[-1]
    return term.name.removesuffix(f" {symbol}") if term.key and not term.change else ""


def _spoken(terms: Sequence[Term]) -> str:
    """Return the formula as a line of text, followed by the removed and the new pieces."""
    formula = spoken_formula(" ".join(plain_text(term.latex) for term in terms if term.change != "old"))
    if not any(term.change for term in terms):
        return tr("Formula: {formula}").format(formula=formula)
    old, new = (", ".join(term.name for term in terms if term.change == kind and term.name) for kind in ("old", "new"))
    return tr("Formula, changed: {formula}. Struck out: {old}. New: {new}.").format(
        formula=formula, old=old or tr("nothing", "parts of a formula"), new=new or tr("nothing", "parts of a formula")
    )
