"""A typed completion token by token, and its position among the advantages of its group."""

from __future__ import annotations

from collections import Counter

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.plotting.numbers import shown
from app.theme.painting import TOP, painter_of, write
from app.theme.tokens import LIGHT, Theme
from grpo_core.questions import Answer
from grpo_core.text import tr

UNLIKELY = 5.0
"""Value of −log π in nats at which a token's bar has its full height."""
CERTAIN = 5e-4
"""Value of −log π in nats below which a token counts as certain."""
BARS = 8
"""Maximum height of tokens, bars and numbers, in lines."""
PILE = 3
"""Number of marks with equal advantage that are stacked before a second stack begins next to the first."""
DOT, AXIS = 3.2, 20.0
"""Radius of a mark and margin around the axis, in pixels at 100 %."""
BESIDE, BESIDE_LOW = 560, 300
"""Widths in pixels at 100 % above which the axis is next to the tokens.

The first applies to a strip of any height, the second to a short strip.
"""
TOKENS = 5
"""Number of lines that tokens, bars and numbers need above the axis."""
LIKELIEST = tr("likeliest")
STALE = 0.45
"""Opacity of an answer that belongs to another update or prompt than the one shown."""


class PlacedStrip(QWidget):
    """A column per token: its text, a bar of −log π, the number, and the policy's likeliest token.

    Next to or below the columns is an axis of advantages with one mark per completion of the group and a ring around
    the typed one.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # in any language
        self._theme, self._scale = LIGHT, 1.0
        self._words: tuple[str, ...] = ()
        self._answer: Answer | None = None
        self._rewards = self._advantages = np.empty(0)
        self._stale = False
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAccessibleName(tr("Your completion in its group"))

    def sizeHint(self) -> QSize:
        return QSize(320, self.fontMetrics().height() * 6)

    def minimumSizeHint(self) -> QSize:
        return QSize(100, self.fontMetrics().height() * 5)

    def show_nothing(self, theme: Theme, scale: float) -> None:
        self._theme, self._scale, self._answer = theme, scale, None
        self.setAccessibleDescription("")
        self.update()

    def show_answer(
        self,
        theme: Theme,
        scale: float,
        words: tuple[str, ...],
        answer: Answer,
        rewards: np.ndarray,
        advantages: np.ndarray,
        *,
        stale: bool,
    ) -> None:
        """Show an answer in the vocabulary ``words``.

        ``rewards`` and ``advantages`` (G + 1,) have the typed completion last; ``stale``: whether another update is
        shown now.
        """
        self._theme, self._scale, self._words, self._answer = theme, scale, words, answer
        self._rewards, self._advantages, self._stale = rewards, advantages, stale
        self.setAccessibleDescription(
            ", ".join(f"{words[t]} {shown(float(x))}" for t, x in zip(answer.tokens, answer.logp, strict=True))
        )
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._answer is None:
            return
        painter = painter_of(self)
        painter.setOpacity(STALE if self._stale else 1.0)
        whole, below = QRectF(self.rect()), self._group_height
        low = self.height() < below + TOKENS * self._line
        if self.width() > (BESIDE_LOW if low else BESIDE) * self._scale:
            self._paint_tokens(painter, whole.adjusted(0, 0, -whole.width() * 0.42, 0))
            self._paint_group(painter, whole.adjusted(whole.width() * 0.6, 0, 0, 0))
        else:
            self._paint_tokens(painter, whole.adjusted(0, 0, 0, -below))
            self._paint_group(painter, whole.adjusted(0, whole.height() - below, 0, 0))

    @property
    def _line(self) -> float:
        return QFontMetricsF(self._theme.font("digits", self._scale)).height()

    @property
    def _group_height(self) -> float:
        """Height in pixels of the axis of advantages with its marks, two lines of labels and its caption.

        At most :data:`PILE` marks are stacked, but those closer than a pixel may stack higher.
        """
        piled = min(max(Counter(self._advantages.tolist()).values(), default=1), PILE)
        return piled * self._pitch + AXIS + 3 * self._line

    @property
    def _pitch(self) -> float:
        return 2.6 * DOT * self._scale

    def _paint_tokens(self, painter: QPainter, area: QRectF) -> None:
        assert self._answer is not None
        theme, answer, line = self._theme, self._answer, self._line
        small = theme.font("digits", self._scale)
        metrics = QFontMetricsF(small)
        left = max(map(metrics.horizontalAdvance, (tr("log π"), LIKELIEST))) + 10
        needed = metrics.horizontalAdvance("−0.000") + 8
        count = max(len(answer.tokens), 1)
        area = QRectF(area.left(), area.top(), area.width(), min(area.height(), BARS * line))
        if (area.width() - left) / count < needed:
            left = 0.0
        width = min(needed, (area.width() - left) / count)
        for lines, text in ((2, tr("log π")), (1, LIKELIEST)) if left else ():
            label = QRectF(area.left(), area.bottom() - lines * line, left, line)
            write(painter, label, text, small, theme.colour("muted"), 0)
        for i, token in enumerate(answer.tokens):
            cell = QRectF(area.left() + left + i * width, area.top(), width - 2, area.height())
            self._paint_token(painter, cell, int(token), i, numbers=width >= needed)

    def _paint_token(self, painter: QPainter, cell: QRectF, token: int, place: int, *, numbers: bool) -> None:
        assert self._answer is not None
        theme, line, logp = self._theme, self._line, float(self._answer.logp[place])
        ink = theme.colour("text" if token else "muted")
        write(painter, cell, self._words[token], theme.font("mono", self._scale), ink, TOP)
        top = painter.fontMetrics().height() + 2.0
        space = max(cell.height() - top - 2 * line - 4, 4.0)
        bar = QRectF(cell.left() + 2, cell.top() + top, cell.width() - 4, max(space * min(-logp / UNLIKELY, 1.0), 1.0))
        painter.fillRect(bar, theme.colour("policy"))
        if not numbers:
            return
        small, number = theme.font("digits", self._scale), shown(logp) if -logp >= CERTAIN else "≈ 0"
        write(painter, cell.adjusted(0, cell.height() - 2 * line, 0, 0), number, small, theme.colour("text"), TOP)
        likeliest, logp = self._answer.likeliest(place)
        chance = float(np.exp(logp))
        text = "·" if likeliest == token else f"{self._words[likeliest]} {chance:.2f}"
        write(painter, cell.adjusted(0, cell.height() - line, 0, 0), text, small, theme.colour("muted"), TOP)

    def _paint_group(self, painter: QPainter, area: QRectF) -> None:
        """Paint the marks, hollow below zero and filled above, with reward and number under each stack."""
        theme, line, dot = self._theme, self._line, DOT * self._scale
        painter.setFont(theme.font("digits", self._scale))
        metrics = QFontMetricsF(painter.font())
        label = metrics.horizontalAdvance("R −0.000 ×00") / 2 + 12
        reach = max(float(np.abs(self._advantages).max(initial=0.0)), 1e-9)
        left, right, centre = area.left() + label, area.right() - label, area.center().x()
        places = [round(centre + float(a) / reach * (right - left) / 2) for a in self._advantages]
        highest = min(max(Counter(places).values(), default=1), PILE)
        axis = area.top() + highest * self._pitch + AXIS / 2
        painter.setPen(QPen(theme.colour("border"), 1))
        painter.drawLine(QPointF(left, axis), QPointF(right, axis))
        painter.drawLine(QPointF(centre, axis - 6), QPointF(centre, axis + 6))
        self._label(painter, places, axis + 6)
        caption = QRectF(area.left(), axis + 8 + 2 * line, area.width(), line)
        if caption.bottom() <= area.bottom() + 2:
            text = tr("advantages of the group, yours ringed")
            write(painter, caption, text, painter.font(), theme.colour("muted"), TOP)
        piled: Counter[int] = Counter()
        for i, x in enumerate(places):
            column, row = divmod(piled[x], PILE)
            piled[x] += 1
            spot = QPointF(x + column * self._pitch, axis - dot - 2 - row * self._pitch)
            up = self._advantages[i] >= 0
            painter.setPen(QPen(theme.ink("push_up" if up else "push_down"), 1.5))
            painter.setBrush(theme.colour("push_up") if up else Qt.BrushStyle.NoBrush)
            painter.drawEllipse(spot, dot, dot)
            if i == len(places) - 1:
                painter.setPen(theme.ring)
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.drawEllipse(spot, 2 * dot, 2 * dot)

    def _label(self, painter: QPainter, places: list[int], top: float) -> None:
        """Paint advantage, reward and number of completions at each position, or only at the outer ones of many."""
        metrics = QFontMetricsF(painter.font())
        count, until = Counter(places), -np.inf
        ticks = sorted({x: i for i, x in enumerate(places)}.items())
        for x, i in ticks if len(ticks) <= 4 else (ticks[0], ticks[-1]):
            advantage, paid = shown(float(self._advantages[i])), f"R {shown(float(self._rewards[i]))} ×{count[x]}"
            width = max(map(metrics.horizontalAdvance, (advantage, paid)))
            if x - width / 2 < until:
                continue
            until = x + width / 2 + 6
            for text, lines, colour in ((advantage, 0, "text"), (paid, 1, "reward")):
                area = QRectF(x - width / 2 - 2, top + lines * self._line, width + 4, self._line)
                write(painter, area, text, painter.font(), self._theme.ink(colour), TOP)
