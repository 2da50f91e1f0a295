"""Text in an area and framed boxes, which most painted widgets draw."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QFont, QFontMetrics, QPainter, QPen
from PySide6.QtWidgets import QWidget

_AT = Qt.AlignmentFlag
LEFT, RIGHT = int(_AT.AlignLeft | _AT.AlignVCenter), int(_AT.AlignRight | _AT.AlignVCenter)
CENTRE, TOP = int(_AT.AlignCenter), int(_AT.AlignHCenter | _AT.AlignTop)
TOP_LEFT = int(_AT.AlignLeft | _AT.AlignTop)
WRAPPED = int(Qt.TextFlag.TextWordWrap) | TOP_LEFT


def painter_of(widget: QWidget, *, smooth: bool = True) -> QPainter:
    """Return a painter for the paint event of ``widget``, in its own direction of text.

    If ``smooth``, slanted edges are smoothed. Otherwise that is left to whoever paints the widget, such as an export.
    """
    painter = QPainter(widget)
    painter.setLayoutDirection(widget.layoutDirection())
    if smooth:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    return painter


def write(
    painter: QPainter, area: QRectF, text: str, font: QFont, ink: QColor, align: int = LEFT, *, elided: bool = False
) -> None:
    """Write ``text`` in ``area``. If ``elided``, the part that does not fit is replaced by an ellipsis."""
    painter.setFont(font)
    painter.setPen(ink)
    if elided:
        space = max(round(area.width()), 0)
        text = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, space)
    painter.drawText(area, align, text)


def fitting(text: str, metrics: QFontMetrics, space: int, mark: str = "") -> str:
    """Return ``text`` with an ellipsis at its end if it is wider than ``space``. A ``mark`` at its end is kept."""
    words = text.removesuffix(mark)
    mark = text[len(words) :]
    return metrics.elidedText(words, Qt.TextElideMode.ElideRight, space - metrics.horizontalAdvance(mark)) + mark


def frame(
    painter: QPainter, area: QRectF, pen: QPen | QColor | None, fill: QBrush | QColor | None = None, radius: float = 0.0
) -> None:
    """Draw a rectangle with corners of ``radius``, without an outline or without a filling where it is None."""
    painter.setPen(Qt.PenStyle.NoPen if pen is None else pen)
    painter.setBrush(Qt.BrushStyle.NoBrush if fill is None else fill)
    painter.drawRoundedRect(area, radius, radius)
