"""The words that a widget paints, wherever they come from, read from the widget drawn as SVG."""

from __future__ import annotations

from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QPoint, QPointF, QRect, QRectF
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QRegion, QTransform
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import QWidget

from app.plotting.bar_chart import BarChart
from app.plotting.export import plain

NAMESPACE = "{http://www.w3.org/2000/svg}"
DPI = 96


class PaintedWord(NamedTuple):
    """A string, its font size in pixels, and the rectangle that it occupies in the widget."""

    text: str
    pixels: float
    box: QRectF


def painted_words(widget: QWidget) -> list[PaintedWord]:
    """Return every string that ``widget`` and its children paint, in painting order."""
    data = QByteArray()
    buffer = QBuffer(data)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    generator = QSvgGenerator()
    generator.setOutputDevice(buffer)
    generator.setResolution(DPI)
    generator.setSize(widget.size())
    generator.setViewBox(QRect(QPoint(), widget.size()))
    painter = QPainter(generator)
    with plain(widget):  # what a plot keeps as pixels has no words
        QWidget.render(widget, painter, QPoint(), QRegion())
    painter.end()
    buffer.close()
    return [word for group in ElementTree.fromstring(bytes(data.data())).iter(f"{NAMESPACE}g") for word in _of(group)]


def _of(group: ElementTree.Element) -> list[PaintedWord]:
    return [_word(group, text) for text in group.findall(f"{NAMESPACE}text") if (text.text or "").strip()]


def _word(group: ElementTree.Element, text: ElementTree.Element) -> PaintedWord:
    numbers = group.get("transform", "matrix(1,0,0,1,0,0)").removeprefix("matrix(").removesuffix(")").split(",")
    place = QTransform(*map(float, numbers))
    font = QFont(text.get("font-family", ""))
    pixels = float(text.get("font-size", "12").removesuffix("px"))
    font.setPixelSize(max(round(pixels), 1))
    font.setWeight(QFont.Weight(int(text.get("font-weight", "400"))))
    metrics = QFontMetricsF(font)
    at = QPointF(float(text.get("x", "0")), float(text.get("y", "0")))
    wide = metrics.horizontalAdvance(text.text or "")
    box = QRectF(at.x(), at.y() - metrics.ascent(), wide, metrics.height())
    grown = (place.m11() ** 2 + place.m12() ** 2) ** 0.5
    return PaintedWord((text.text or "").strip(), pixels * grown, place.mapRect(box))


def heights_of(chart: BarChart) -> dict[str, np.ndarray]:
    """Return the heights (n,) of every series of a bar chart, by its name."""
    return {series.name: series.heights for series in chart.picture.series}
