"""The part of a painted picture that seldom changes, painted once and copied as pixels in later frames."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QPaintEngine, QPainter, QPixmap, QTransform


class Layer:
    """The cached background layer of a widget, which covers the whole widget.

    Its text is laid out and its lines are drawn only when its content changes. A frame in which only bars move copies
    its pixels. If pixels would not be exact (in a vector file, on paper, in an enlarged picture), it is painted without
    a cache.
    """

    def __init__(self) -> None:
        self._stamp: object = None
        self._pixels = QPixmap()

    def paint(self, painter: QPainter, area: QRect, stamp: object, draw: Callable[[QPainter], None]) -> None:
        """Paint the layer.

        Args:
            painter: the painter of the widget.
            area: the whole widget, in its own coordinates.
            stamp: equal to the last one if the layer has not changed.
            draw: paints every pixel of ``area``; it need not restore the painter's state.
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
            self._pixels.fill(Qt.GlobalColor.white)  # opaque, so that it is copied rather than blended
            below = QPainter(self._pixels)
            below.translate(-area.topLeft())
            draw(below)
            below.end()
        painter.drawPixmap(area.topLeft(), self._pixels)


def _whole(transform: QTransform) -> bool:
    """Whether pixels of a layer coincide with device pixels: at 100 %, 200 %, and an integral offset."""
    ratio = transform.m11()
    plain = transform.isAffine() and not transform.isRotating() and 0 < ratio == transform.m22()
    return plain and all(number == int(number) for number in (ratio, transform.dx(), transform.dy()))
