"""All completions of an update as pixel strips. Dragging enlarges a part; a click selects a token."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QPoint, QPointF, QRect, QRectF, QSize, QSizeF, Qt, Signal
from PySide6.QtGui import QImage, QKeyEvent, QMouseEvent, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.theme.painting import frame, painter_of
from app.theme.tokens import LIGHT, Theme
from grpo_core.text import tr

START, END, TURN = "start", "end", "turn"
"""Alignments of the completions: at the first token, at the last one, or at the first token that the model did not
write.
"""


def offsets(there: np.ndarray, mask: np.ndarray, alignment: str) -> np.ndarray:
    """Return the number of empty positions before the first token of each completion, (B,), all at least 0.

    Args:
        there: tokens that exist, boolean (B, T).
        mask: tokens that the loss counts, boolean (B, T).
    """
    lengths = there.sum(axis=1)
    if alignment == START:
        anchors = np.zeros(len(there), dtype=np.int64)
    elif alignment == END:
        anchors = lengths
    else:
        foreign = there & ~mask
        anchors = np.where(foreign.any(axis=1), foreign.argmax(axis=1), lengths)
    return np.asarray(anchors.max(initial=0) - anchors)


def aligned(values: np.ndarray, there: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Return ``values`` (B, T), each row shifted ``before`` (B,) places to the right, NaN where there is no token."""
    lengths = there.sum(axis=1)
    out = np.full((len(values), int((before + lengths).max(initial=1))), np.nan, dtype=np.float32)
    for row, (first, length) in enumerate(zip(before.tolist(), lengths.tolist(), strict=True)):
        out[row, first : first + length] = values[row, there[row]]
    return out


def edges(count: int, pixels: int) -> np.ndarray:
    """Return the first of ``count`` items on each of ``pixels`` pixels, and ``count`` at the end, (pixels + 1,)."""
    return np.arange(pixels + 1) * count // pixels


def binned(values: np.ndarray, high: int, wide: int) -> np.ndarray:
    """Return ``values`` (R, C) reduced to ``high`` x ``wide`` pixels.

    Each pixel takes the value furthest from 0, or NaN if it has none. With fewer items than pixels, an item covers
    several pixels.
    """
    for axis, pixels in ((1, wide), (0, high)):
        count = values.shape[axis]
        first = edges(count, pixels)[:-1]
        if count <= pixels:
            values = np.take(values, first, axis=axis)
            continue
        most = np.maximum.reduceat(np.where(np.isnan(values), -np.inf, values), first, axis=axis)
        least = np.minimum.reduceat(np.where(np.isnan(values), np.inf, values), first, axis=axis)
        values = np.where(most >= -least, most, least)
        values[np.isinf(most) & np.isinf(least) & (most < 0)] = np.nan
    return values


def picture(share: np.ndarray, up: np.ndarray, down: np.ndarray, ground: int) -> np.ndarray:
    """Return the colours (H, W) of values given as fractions of full tint, from −1 to 1 or beyond.

    Args:
        share: (H, W), NaN where there is no token.
        up, down: colours of the levels from 0 to full tint, above and below 0: 0xFFRRGGBB, (L,) each.
        ground: the colour where there is no token.
    """
    level = np.sqrt(np.minimum(np.abs(np.nan_to_num(share)), 1.0)) * (len(up) - 1)
    index = level.round().astype(np.intp)
    return np.where(np.isnan(share), np.uint32(ground), np.where(share < 0, down[index], up[index])).astype(np.uint32)


LEVELS = 64
DRAG = 6
"""Pointer movement in pixels that turns a press into a drag."""
MARGIN = 8
ROW = 5
"""Minimum row height in pixels at which rows are separated by a line."""


class TokenStrips(QWidget):
    """The raster with the selected token and the part marked by dragging.

    Attributes:
        window_shown: the visible part, in positions of the aligned completions and in rows.

    Signals:
        chosen: a token was clicked: its row in the raster, and its column in the aligned completions.
        activated: show the selected token.
        brushed: the visible part has changed.
    """

    chosen = Signal(int, int)
    activated = Signal()
    brushed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # in any language
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setCursor(Qt.CursorShape.CrossCursor)
        self.setAccessibleName(tr("Overview of all tokens"))
        self.setAccessibleDescription(
            tr(
                "Arrow keys choose a token, Return shows it in the inspector. Plus enlarges around it, Minus or Escape "
                "shows everything."
            )
        )
        self._shares = np.full((1, 1), np.nan, np.float32)
        self._groups: tuple[int, ...] = ()
        self._theme, self._scale, self._signed = LIGHT, 1.0, True
        self.window_shown = QRect(0, 0, 1, 1)
        self._selected: tuple[int, int] | None = None
        self._image: QImage | None = None
        self._key: tuple[object, ...] = ()
        self._from: QPoint | None = None
        self._to: QPoint | None = None

    def sizeHint(self) -> QSize:
        return QSize(600, 240)

    def minimumSizeHint(self) -> QSize:
        return QSize(120, 60)

    # -- what is shown ------------------------------------------------------------------------------------------------

    def show_shares(
        self,
        shares: np.ndarray,
        groups: tuple[int, ...],
        signed: bool,
        theme: Theme,
        scale: float,
        selected: tuple[int, int] | None,
    ) -> None:
        """Draw values given as fractions of full tint.

        Args:
            shares: (R, C) of the aligned completions, NaN where there is no token.
            groups: rows at which a new prompt begins.
            signed: whether negative values have a separate colour.
            selected: (row, position) of the token to ring.
        """
        if shares.shape != self._shares.shape:
            self.window_shown = _whole(shares)
        self._shares, self._groups, self._signed = shares, groups, signed
        self._theme, self._scale, self._selected = theme, scale, selected
        self.update()

    def show_all(self) -> None:
        self._show(_whole(self._shares))

    @property
    def enlarged(self) -> bool:
        return self.window_shown != _whole(self._shares)

    def _show(self, window: QRect) -> None:
        if window != self.window_shown:
            self.window_shown = window
            self.update()
            self.brushed.emit()

    # -- places -------------------------------------------------------------------------------------------------------

    @property
    def area(self) -> QRect:
        return self.rect().adjusted(MARGIN, 2, -MARGIN, -2)

    def place_at(self, point: QPoint) -> tuple[int, int]:
        """Return the (row, position) at a pixel, or the nearest one if the pixel is outside."""
        area, shown = self.area, self.window_shown
        row = shown.top() + (point.y() - area.top()) * shown.height() // max(area.height(), 1)
        place = shown.left() + (point.x() - area.left()) * shown.width() // max(area.width(), 1)
        return min(max(row, shown.top()), shown.bottom()), min(max(place, shown.left()), shown.right())

    def box(self, row: int, place: int) -> QRectF:
        """Return the rectangle of a drawn token, at least three by three pixels in size."""
        area, shown = QRectF(self.area), self.window_shown
        high, wide = area.height() / shown.height(), area.width() / shown.width()
        corner = QPointF(area.left() + (place - shown.left()) * wide, area.top() + (row - shown.top()) * high)
        return QRectF(corner, QSizeF(max(wide, 3), max(high, 3)))

    # -- painting -----------------------------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, theme, area = painter_of(self, smooth=False), self._theme, self.area
        if area.width() < 4 or area.height() < 4:
            return
        painter.drawImage(area, self._raster(area))
        shown = self.window_shown
        high = area.height() / shown.height()
        painter.setPen(QPen(theme.colour("ground"), 1))
        for row in range(shown.top() + 1, shown.bottom() + 1) if high >= ROW else ():
            y = area.top() + (row - shown.top()) * high
            painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y))
        painter.setPen(QPen(theme.colour("muted"), 1))
        for row in self._groups if high >= 1.5 else ():
            if shown.top() < row <= shown.bottom():
                y = area.top() + (row - shown.top()) * high
                painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y))
        if self._selected is not None:
            row, place = self._selected
            if shown.contains(place, row):
                ring = self.box(row, place).adjusted(-2, -2, 2, 2)
                frame(painter, ring, theme.ring)
        if self._from is not None and self._to is not None:
            marked = QRectF(QRect(self._from, self._to).normalized())
            frame(painter, marked, QPen(theme.colour("text"), 1, Qt.PenStyle.DashLine))
        if self.hasFocus():
            ring = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
            frame(painter, ring, QPen(theme.colour("selection"), 1))

    def _raster(self, area: QRect) -> QImage:
        ratio = self.devicePixelRatioF()
        size = round(area.width() * ratio), round(area.height() * ratio)
        key = (id(self._shares), self.window_shown, size, self._theme.name, self._signed)
        if self._image is None or key != self._key:
            shown = self.window_shown
            part = self._shares[shown.top() : shown.bottom() + 1, shown.left() : shown.right() + 1]
            up = _levels(self._theme, "push_up")
            down = _levels(self._theme, "push_down") if self._signed else up
            pixels = picture(binned(part, size[1], size[0]), up, down, self._theme.colour("ground").rgba())
            pixels = np.ascontiguousarray(pixels)
            self._image = QImage(pixels.data, size[0], size[1], 4 * size[0], QImage.Format.Format_RGB32).copy()
            self._key = key
        return self._image

    # -- input --------------------------------------------------------------------------------------------------------

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._from, self._to = event.position().toPoint(), None

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        here = event.position().toPoint()
        if self._from is not None and (self._to is not None or (here - self._from).manhattanLength() >= DRAG):
            self._to = here
            self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        begin, end = self._from, self._to
        self._from = self._to = None
        self.update()
        if begin is None:
            return
        if end is None:
            self.chosen.emit(*self.place_at(begin))
            return
        (row, place), (last_row, last_place) = self.place_at(begin), self.place_at(end)
        top, bottom = sorted((row, last_row))
        left, right = sorted((place, last_place))
        self._show(QRect(QPoint(left, top), QPoint(right, bottom)))

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self.show_all()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        moves = {
            Qt.Key.Key_Left: (0, -1),
            Qt.Key.Key_Right: (0, 1),
            Qt.Key.Key_Up: (-1, 0),
            Qt.Key.Key_Down: (1, 0),
        }
        key = Qt.Key(event.key())
        if key in moves:
            here = self._selected or (self.window_shown.top(), self.window_shown.left())
            row, place = (a + b for a, b in zip(here, moves[key], strict=True))
            if 0 <= row < self._shares.shape[0] and 0 <= place < self._shares.shape[1]:
                self.chosen.emit(row, place)
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.activated.emit()
        elif key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal):
            self._enlarge()
        elif key in (Qt.Key.Key_Minus, Qt.Key.Key_Escape) and self.enlarged:
            self.show_all()
        else:
            super().keyPressEvent(event)

    def _enlarge(self) -> None:
        """Show half as many rows and positions, around the selected token."""
        shown, (row, place) = self.window_shown, self._selected or (self.window_shown.top(), self.window_shown.left())
        high, wide = max(shown.height() // 2, 1), max(shown.width() // 2, 1)
        top = min(max(row - high // 2, shown.top()), shown.bottom() + 1 - high)
        left = min(max(place - wide // 2, shown.left()), shown.right() + 1 - wide)
        self._show(QRect(left, top, wide, high))


def _whole(shares: np.ndarray) -> QRect:
    return QRect(0, 0, shares.shape[1], shares.shape[0])


def _levels(theme: Theme, meaning: str) -> np.ndarray:
    return np.array(
        [theme.faint(meaning, 0.06 + 0.84 * level / LEVELS).rgba() for level in range(LEVELS + 1)], np.uint32
    )
