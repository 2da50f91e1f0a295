"""The part of a painted picture that seldom changes: painted once, and copied as pixels in the frames after that."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QPaintEngine, QPainter, QPixmap, QTransform


class Layer:
    """The lowest part of a widget's picture, which covers the whole widget.

    Its text is laid out and its lines are drawn when what it shows changes. A frame in which only bars move copies its
    pixels. Where the pixels would not be those of the painting itself (in a vector file, on paper, in a picture that is
    drawn larger), it is painted and nothing is kept.
    """

    def __init__(self) -> None:
        self._stamp: object = None
        self._pixels = QPixmap()

    def paint(self, painter: QPainter, area: QRect, stamp: object, draw: Callable[[QPainter], None]) -> None:
        """Paint the layer.

        Args:
            painter: of the widget.
            area: all of the widget, in its own coordinates.
            stamp: equal to the last one if the layer looks as it did.
            draw: paints every pixel of ``area``; it leaves the painter's state as it likes.
        """
        transform = painter.deviceTransform()
        ratio = transform.m11()
        if not (painter.paintEngine().type() is QPaintEngine.Type.Raster and _whole(transform)):
            painter.save()
            draw(painter)
            painter.restore()
            return
        if (ratio, area, stamp) != self._stamp:
            self._stamp = ratio, QRect(area), stamp
            self._pixels = QPixmap(area.size() * ratio)
            self._pixels.setDevicePixelRatio(ratio)
            self._pixels.fill(Qt.GlobalColor.white)  # opaque: it is copied, not blended
            below = QPainter(self._pixels)
            below.translate(-area.topLeft())
            draw(below)
            below.end()
        painter.drawPixmap(area.topLeft(), self._pixels)


def _whole(transform: QTransform) -> bool:
    """Whether pixels of a layer fall on whole pixels of what is painted on: 100 %, 200 %, at a whole place."""
    ratio = transform.m11()
    plain = transform.isAffine() and not transform.isRotating() and 0 < ratio == transform.m22()
    return plain and all(number == int(number) for number in (ratio, transform.dx(), transform.dy()))
