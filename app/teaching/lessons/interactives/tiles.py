"""Groups as tiles with one cell per sample, filled if the sample was right. Tiles without signal are grey."""

from __future__ import annotations

import math

import numpy as np
from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.theme.tokens import LIGHT, Theme
from grpo_core.text import plural, tr

GAP = 0.18
"""Gap between tiles, as a share of the distance between their centres."""


class Tiles(QWidget):
    """A grid of tiles for P groups of G samples."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.theme: Theme = LIGHT
        self._right = np.empty((0, 0), dtype=bool)
        self._dead = np.empty(0, dtype=bool)
        self.setAccessibleName(tr("Groups"))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)

    def show_groups(self, right: np.ndarray, dead: np.ndarray, theme: Theme) -> None:
        """Draw which samples were right, boolean (P, G), and which groups are dead, boolean (P,)."""
        self.theme, self._right, self._dead = theme, right, dead
        self.setAccessibleDescription(
            plural("{sum} of {count} group is dead.", "{sum} of {count} groups are dead.", len(dead)).format(
                sum=int(dead.sum()), count=len(dead)
            )
        )
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(480, 200)

    def minimumSizeHint(self) -> QSize:
        return QSize(120, 60)

    def paintEvent(self, event: QPaintEvent) -> None:
        groups, count = self._right.shape
        if not groups:
            return
        painter = QPainter(self)
        painter.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        wide, high = self.width(), self.height()
        columns = max(1, min(groups, round(math.sqrt(groups * wide / max(high, 1)))))
        rows = math.ceil(groups / columns)
        columns = math.ceil(groups / rows)  # rows and columns as equal as possible
        pitch_x, pitch_y = wide / columns, high / rows
        across = max(1, min(count, round(math.sqrt(count * pitch_x / max(pitch_y, 1)))))
        down = math.ceil(count / across)
        for n in range(groups):
            tile = QRectF(n % columns * pitch_x, n // columns * pitch_y, pitch_x, pitch_y)
            inside = tile.adjusted(GAP * pitch_x / 2, GAP * pitch_y / 2, -GAP * pitch_x / 2, -GAP * pitch_y / 2)
            side = min(inside.width() / across, inside.height() / down)
            left = inside.center().x() - side * across / 2
            top = inside.center().y() - side * down / 2
            self._paint_tile(painter, n, QRectF(left, top, side, side), across)

    def _paint_tile(self, painter: QPainter, group: int, first: QRectF, across: int) -> None:
        theme, dead, side = self.theme, bool(self._dead[group]), first.width()
        down = math.ceil(self._right.shape[1] / across)
        frame = QRectF(first.left(), first.top(), side * across, side * down).adjusted(-2, -2, 2, 2)
        if dead:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.faint("dead", 0.22))
            painter.drawRoundedRect(frame, 3, 3)
        meaning = "dead" if dead else "policy"
        for n, right in enumerate(self._right[group]):
            cell = first.translated(n % across * side, n // across * side)
            space = side * 0.14
            painter.setPen(QPen(theme.colour(meaning if right or dead else "push_down"), max(side * 0.08, 1.0)))
            painter.setBrush(theme.colour(meaning) if right else Qt.BrushStyle.NoBrush)
            painter.drawEllipse(cell.adjusted(space, space, -space, -space))
