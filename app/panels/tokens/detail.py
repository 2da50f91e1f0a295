"""The details of one token: the alternatives to it before and after the update, and the terms of its push."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QHelpEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from app.plotting.numbers import shown
from app.theme.labels import plain_tip
from app.theme.painting import RIGHT, frame, painter_of, write
from app.theme.tokens import Theme
from app.token_grid.cells import token_text
from app.token_grid.terms import Line, lines
from app.workspace.step_view import StepView
from app.workspace.view import View
from grpo_core.explain import Quantity
from grpo_core.text import plural, tr

TOP = 5
"""Number of tokens shown from a full distribution."""


@dataclass(frozen=True, kw_only=True)
class Alternative:
    """A token that could have been drawn at a position.

    Attributes:
        before, after: its probability before the update, and after the part revealed so far.
        reference: its probability under the reference policy; None if not recorded.
        taken: whether it was drawn.
        quantity: address that explains ``after``.
    """

    word: str
    before: float
    after: float
    reference: float | None
    taken: bool
    quantity: Quantity

    @property
    def sentence(self) -> str:
        """A sentence with all numbers of the alternative, for the tooltip and screen readers."""
        if self.reference is None:
            text = tr("“{word}”: {before} before, {after} after.")
        else:
            text = tr("“{word}”: {before} before, {after} after, {reference} under the reference.")
        return text.format(
            word=self.word, before=shown(self.before), after=shown(self.after), reference=shown(self.reference)
        )


def alternatives(view: StepView, words: tuple[str, ...], row: int, token: int) -> list[Alternative]:
    """Return the likeliest tokens at this position, or an empty list if none are recorded.

    Between two inner passes, the full distribution is not recorded; "after" then means after the last pass.
    """
    step = view.step
    if step is None or not step.there[row, token]:
        return []
    sampled = int(step.tokens[row, token])
    if step.context is not None and view.old is not None:
        now, passed = (view.policy(step.passes), step.passes) if view.now is None else (view.now, view.updated)
        assert now is not None
        context = int(step.context[row, token])
        before, after = view.old[context], now[context]
        reference = None if view.reference is None else view.reference[context]
        likeliest = np.argsort(-np.maximum(before, after), kind="stable")[:TOP].tolist()
        places = actions = likeliest if sampled in likeliest else [*likeliest[: TOP - 1], sampled]
        quantity = Quantity("probability", passed=passed, context=context)
    elif step.top_tokens is not None and step.top_logp is not None:
        revealed = view.updated > 0
        before, last = np.exp(step.top_logp[:, row, token].astype(float))
        after = last if revealed else before
        reference = None if step.ref_top_logp is None else np.exp(step.ref_top_logp[row, token].astype(float))
        actions = step.top_tokens[row, token].tolist()
        places = list(range(len(actions)))
        quantity = Quantity("alternative", passed=step.passes if revealed else 0, row=row, token=token)
    else:
        return []
    return [
        Alternative(
            word=token_text(words, action),
            before=float(before[place]),
            after=float(after[place]),
            reference=None if reference is None else float(reference[place]),
            taken=action == sampled,
            quantity=replace(quantity, action=action),
        )
        for place, action in zip(places, actions, strict=True)
    ]


def remark(view: StepView, row: int, token: int) -> str:
    """Return a note on the alternatives at a position: that they are not all tokens, or why there are none."""
    step = view.step
    if step is None or not step.there[row, token]:
        return ""
    if step.context is not None and view.old is not None:
        return "" if view.now is not None else tr("before → after all passes")
    if step.top_tokens is None:
        return tr("Not recorded: other tokens at this place")
    if 0 < view.updated < step.passes:
        return tr("The {count} likeliest, not all: before → after all passes").format(count=step.top_tokens.shape[-1])
    return tr("The {count} likeliest, not all: before → after").format(count=step.top_tokens.shape[-1])


MARGIN = 8.0
"""Horizontal margins of the rows in pixels."""
ROOMY, TIGHT = 1.45, 1.25
"""Height of a row by that of its text: usually, and if the rows would not all fit."""
FEWEST = 4
"""Minimum number of rows below the title."""


def row_height(theme: Theme, scale: float, spacing: float = ROOMY) -> float:
    """Return the height of a row in pixels, used for both painting and the size hint."""
    return QFontMetricsF(theme.font("section", scale)).height() * spacing


class TokenDetail(QWidget):
    """A painted column: bars of the likeliest alternatives, then a table of terms. Each row can be explained.

    Rows that do not fit are on further pages. The page with the current row is shown, and its last row turns the page.
    """

    wanted = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # in any language
        self._view: View | None = None
        self._token = (0, 0)
        self._lines: list[Line] = []
        self._alternatives: list[Alternative] = []
        self._title = self._caption = ""
        self._current: int | None = None  # index among all rows, alternatives first; None for the first term
        self._places: dict[int, QRectF] = {}  # of the rows on the page, by their index
        self._turn, self._next = QRectF(), 0  # the row that turns the page, and the first row of the next page
        self.setAccessibleName(tr("Token"))
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Expanding)

    def sizeHint(self) -> QSize:
        return QSize(280, max(self._height(len(self._alternatives) + len(self._lines) + 1), 240))

    def show_token(self, view: View, row: int, token: int) -> None:
        self._view, self._token = view, (row, token)
        step = view.step.step
        assert step is not None
        words = view.run.origin.vocabulary
        word = token_text(words, int(step.tokens[row, token]))
        self._title = tr("Token {token} of completion {row}: “{word}”").format(token=token + 1, row=row + 1, word=word)
        self._alternatives = alternatives(view.step, words, row, token)
        self._lines = lines(view.step, row, token)
        self._caption = remark(view.step, row, token)
        self.setMinimumHeight(self._height(FEWEST))
        if self._current is not None:
            self._current = min(self._current, max(len(self._alternatives) + len(self._lines) - 1, 0))
        self.setAccessibleName(self._title)
        terms = "; ".join(f"{name} {value}" for name, value, _, _ in self._lines)
        words = (self._caption, *(each.sentence for each in self._alternatives), terms)
        self.setAccessibleDescription(" ".join(filter(None, words)))
        self.update()

    def _height(self, rows: int) -> int:
        if self._view is None:
            return 0
        theme, scale = self._view.theme, self._view.scale
        high = (rows + 1) * row_height(theme, scale) + self._caption_height(theme, scale)
        return math.ceil(8 + high + 8 + 8)

    def _paged(self, space: float) -> tuple[range, float]:
        """Return the rows on the current page, and the height of a row, if all rows have ``space`` pixels.

        The heading of the terms counts as a row, that after the alternatives.
        """
        assert self._view is not None
        count = len(self._alternatives) + 1 + len(self._lines)
        for spacing in (ROOMY, TIGHT):
            line = row_height(self._view.theme, self._view.scale, spacing)
            if count * line <= space:
                return range(count), line
        each = max(int(space / line) - 1, 1)
        first = (self.current + (self.current >= len(self._alternatives))) // each * each
        return range(first, min(first + each, count)), line

    def _caption_height(self, theme: Theme, scale: float) -> float:
        if not self._caption:
            return 0.0
        metrics = QFontMetricsF(theme.font("section", scale))
        space = QRectF(0, 0, max(self.width() - 2 * MARGIN, 1), 1000)
        wrapped = metrics.boundingRect(space, Qt.TextFlag.TextWordWrap, self._caption).height()
        return wrapped + row_height(theme, scale) - metrics.height()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self.setMinimumHeight(self._height(FEWEST))

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._view is None:
            return
        theme, scale = self._view.theme, self._view.scale
        painter, section, muted = painter_of(self), theme.font("section", scale), theme.colour("muted")
        line = row_height(theme, scale)
        width = self.width() - 2 * MARGIN
        write(painter, QRectF(MARGIN, 8.0, width, line), self._title, section, muted, elided=True)
        y = 8.0 + line
        if self._caption:
            high = self._caption_height(theme, scale)
            flags = int(Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextWordWrap)
            write(painter, QRectF(MARGIN, y, width, high), self._caption, section, muted, flags)
            y += high
        rows, line = self._paged(self.height() - y - 12)
        self._places, self._turn = {}, QRectF()
        likeliest, count = len(self._alternatives), len(self._alternatives) + 1 + len(self._lines)
        for row in rows:
            place = QRectF(MARGIN, y, width, line)
            if row == likeliest:
                y += 8 if row > rows[0] else 0
                place.moveTop(y)
                write(painter, place, tr("Where its push comes from"), section, muted, elided=True)
            elif row < likeliest:
                painter.setFont(theme.font("body", scale))
                self._paint_alternative(painter, theme, place, self._alternatives[row])
                self._place(painter, theme, place, row)
            else:
                painter.setFont(theme.font("body", scale))
                self._paint_term(painter, theme, place, self._lines[row - likeliest - 1])
                self._place(painter, theme, place, row - 1)
            y += line
        if len(rows) < count:
            self._turn, after = QRectF(MARGIN, y, width, line), rows[-1] + 1
            self._next = 0 if after == count else after - (after > likeliest)
            rest = plural("{count} more row ▸", "{count} more rows ▸", count - after).format(count=count - after)
            text = tr("◂ The first rows") if after == count else rest
            write(painter, self._turn, text, section, theme.ink("policy"))

    def _paint_term(self, painter: QPainter, theme: Theme, place: QRectF, term: Line) -> None:
        name, value, colour, _ = term
        beside = place.adjusted(0, 0, -painter.fontMetrics().horizontalAdvance(value) - 8, 0)
        write(painter, beside, name, painter.font(), theme.colour("text"), elided=True)
        write(painter, place, value, painter.font(), theme.ink(colour), RIGHT)
        painter.setPen(QPen(theme.colour("border"), 1))
        painter.drawLine(place.bottomLeft(), place.bottomRight())

    def _place(self, painter: QPainter, theme: Theme, place: QRectF, index: int) -> None:
        """Record the rectangle of the row ``index``, and ring it if it is the current one."""
        self._places[index] = place
        if self.hasFocus() and index == self.current:
            frame(painter, place.adjusted(-4, 1, 4, -1), QPen(theme.colour("selection"), 2), radius=4)

    def _paint_alternative(self, painter: QPainter, theme: Theme, place: QRectF, item: Alternative) -> None:
        """Paint the probability after the update, below it that before it, and the reference as a line across."""
        before, after = item.before, item.after
        metrics = painter.fontMetrics()
        space = metrics.horizontalAdvance("0.000 → 0.000") + 8
        widest = max(metrics.horizontalAdvance(f"{each.word} ●") for each in self._alternatives)
        least, most = 3.0 * metrics.horizontalAdvance("0"), place.width() - space - 32
        label = QRectF(place.left(), place.top(), max(least, min(widest, most)), place.height())
        font, ink = painter.font(), theme.colour("text")
        beside = metrics.horizontalAdvance(" ●") if item.taken else 0
        word = metrics.elidedText(item.word, Qt.TextElideMode.ElideRight, round(label.width() - beside))
        write(painter, label, f"{word} ●" if item.taken else word, font, ink)
        write(painter, place, f"{shown(before)} → {shown(after)}", font, ink, RIGHT)
        bar = QRectF(label.right() + 4, place.top(), max(place.width() - label.width() - space - 8, 20), place.height())
        now = QRectF(bar.left(), bar.top() + bar.height() * 0.22, bar.width() * after, bar.height() * 0.3)
        frame(painter, now, None, theme.colour("policy"))
        then = QRectF(bar.left(), bar.top() + bar.height() * 0.58, bar.width() * before, bar.height() * 0.16)
        frame(painter, then, QPen(theme.colour("old"), 1))
        if item.reference is not None:
            x = bar.left() + bar.width() * item.reference
            painter.setPen(QPen(theme.colour("reference"), 2))
            painter.drawLine(QPointF(x, bar.top() + bar.height() * 0.14), QPointF(x, bar.top() + bar.height() * 0.82))

    @property
    def current(self) -> int:
        """Index of the row with the keyboard cursor, by default the first term below the alternatives."""
        return len(self._alternatives) if self._current is None else self._current

    @property
    def quantities(self) -> list[Quantity | None]:
        """The address that explains each row, alternatives first."""
        return [*(each.quantity for each in self._alternatives), *(line[3] for line in self._lines)]

    def event(self, event: QEvent) -> bool:
        if event.type() is QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            under = [n for n, place in self._places.items() if place.contains(QPointF(event.pos()))]
            texts = [self._alternatives[n].sentence for n in under if n < len(self._alternatives)]
            QToolTip.showText(event.globalPos(), plain_tip(texts[0]) if texts else "", self)
            return True
        return super().event(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        for n, place in self._places.items():
            if place.contains(event.position()):
                self._current = n
        if self._turn.contains(event.position()):
            self._current = self._next
        self.setFocus(Qt.FocusReason.MouseFocusReason)
        self.update()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if not self._turn.contains(event.position()):
            self.explain_current()

    def explain_current(self) -> None:
        quantities = self.quantities
        quantity = quantities[self.current] if self.current < len(quantities) else None
        if quantity is not None:
            self.wanted.emit(quantity)

    def explained_box(self) -> QRect:
        return self._places[self.current].toAlignedRect() if self.current in self._places else self.rect()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        last = len(self._alternatives) + len(self._lines) - 1
        if event.key() == Qt.Key.Key_Down:
            self._current = min(self.current + 1, last)
        elif event.key() == Qt.Key.Key_Up:
            self._current = max(self.current - 1, 0)
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.explain_current()
        else:
            super().keyPressEvent(event)
        self.update()
