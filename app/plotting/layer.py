"""A rarely changing part of a painted picture, painted once and copied as pixels in later frames."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QPaintEngine, QPainter, QPixmap, QTransform


class Layer:
    """The cached background of a widget.

    Text is laid out and lines are drawn only when the background changes. In all other frames, its pixels are copied.
    If copied pixels would not be exact (in vector files, on paper, at a fractional scale), it is painted without a
    cache.
    """

    def __init__(self) -> None:
        self._stamp: object = None
        self._pixels = QPixmap()

    def paint(self, painter: QPainter, area: QRect, stamp: object, draw: Callable[[QPainter], None]) -> None:
        """Paint the layer.

        Args:
            area: rectangle of the widget, in its own coordinates.
            stamp: a value that equals the previous one if the layer has not changed.
            draw: paints every pixel of ``area``. It need not restore the painter's state.
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
    """Return whether the scale and the offset are whole numbers, so that the pixels of a layer coincide with device
    pixels.
    """
    ratio = transform.m11()
    plain = transform.isAffine() and not transform.isRotating() and 0 < ratio == transform.m22()
    return plain and all(number == int(number) for number in (ratio, transform.dx(), transform.dy()))
