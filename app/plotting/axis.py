"""Axes shared by plots and painted charts: ranges, round ticks, layout, grid lines and labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPen

from app.plotting.numbers import MINUS
from app.plotting.ranges import held_range, ticks
from app.theme.painting import CENTRE, RIGHT
from app.theme.tokens import Theme

PAD = 7.0
"""Padding in pixels above and below the range, so that nothing at its ends is cut off."""
X_PITCH, Y_PITCH = 64.0, 34.0
"""Minimum distance in pixels between two numbers on an axis, at 100 %."""
EDGE = 2
"""Pixels between the labels and the edge of the widget."""
Tick = tuple[float, str]
Number = TypeVar("Number", float, np.ndarray)


@dataclass(frozen=True, kw_only=True)
class Scale:
    """The range and labels of one axis of a plot.

    Attributes:
        label: the label in words; can be empty if the title contains it.
        unit: the unit, for example "nats"; empty for a pure number.
        low, high: fixed ends; an end that is None follows the data with hysteresis.
        whole: whether ticks are limited to integers, as for updates and actions.
    """

    label: str = ""
    unit: str = ""
    low: float | None = None
    high: float | None = None
    whole: bool = False

    @property
    def text(self) -> str:
        return f"{self.label} ({self.unit})" if self.label and self.unit else self.label or self.unit

    def fitting(self, low: float, high: float, current: tuple[float, float] | None) -> tuple[float, float]:
        """Return the ends of the axis for data in [low, high].

        Fixed ends are kept. Open ends are round numbers around the data; they remain those of ``current`` while it
        fits.
        """
        if self.low is not None:
            low, high = self.low, max(high, self.low)
        bottom, top = held_range(low, high, current, tight=self.low is not None)
        return (bottom if self.low is None else self.low), (top if self.high is None else self.high)


@dataclass(frozen=True, kw_only=True)
class Axes:
    """Mapping between data coordinates and a rectangle of a widget.

    Attributes:
        area: rectangle of the data, in pixels.
        x, y: ranges of the axes, without padding.
        pad: pixels between each end of the y range and the edge of ``area``.
    """

    area: QRectF
    x: tuple[float, float]
    y: tuple[float, float]
    pad: float

    @cached_property
    def _ends(self) -> tuple[float, float, float, float]:
        """Left end and width of x, lower end and height of y, in pixels.

        Cached, since a picture maps several hundred points.
        """
        area, pad = self.area, self.pad
        return area.left(), area.width(), area.bottom() - pad, area.height() - 2 * pad

    def at_x(self, x: Number) -> Number:
        """Return the pixel column of each ``x``, counted from the left of the widget."""
        low, high = self.x
        left, width, _, _ = self._ends
        return left + (x - low) / (high - low) * width

    def at_y(self, y: Number) -> Number:
        """Return the pixel row of each ``y``, counted from the top of the widget."""
        low, high = self.y
        _, _, base, height = self._ends
        return base - (y - low) / (high - low) * height

    def at(self, x: float, y: float) -> QPointF:
        return QPointF(self.at_x(x), self.at_y(y))

    def points(self, heights: np.ndarray, offset: float = 0.0) -> list[QPointF | None]:
        """Return the position in pixels of each of ``heights`` (n,), the first over 1 + ``offset``. None for NaN."""
        columns, rows = self.at_x(np.arange(1.0, len(heights) + 1) + offset).tolist(), self.at_y(heights).tolist()
        return [QPointF(x, y) if y == y else None for x, y in zip(columns, rows, strict=True)]

    def x_of(self, pixel: float) -> float:
        low, high = self.x
        return low + (pixel - self.area.left()) / max(self.area.width(), 1.0) * (high - low)

    def y_of(self, pixel: float) -> float:
        low, high = self.y
        return low + (self.area.bottom() - self.pad - pixel) / max(self.area.height() - 2 * self.pad, 1.0) * (
            high - low
        )


def area_in(
    size: QSizeF,
    theme: Theme,
    factor: float,
    labels: tuple[str, str],
    *,
    right: float = 0.0,
    named: bool = False,
    bare: bool = False,
) -> QRectF:
    """Return the rectangle of the data in a widget of ``size``, leaving space for ticks and axis labels.

    Args:
        labels: the labels of x and y; an empty one takes no space.
        right: pixels reserved to the right of the data.
        named: whether to reserve space for a y label even if there is none, to align with a plot above or below.
        bare: whether the x axis has no numbers because the plot below shows the same ones.
    """
    font = theme.font("digits", factor).pixelSize()
    line = font * 1.3
    left = EDGE + round(font * 3.4 + 6 + (line if labels[1] or named else 0))
    below = EDGE + round(4 * factor if bare else 10 * factor + line * (1 + bool(labels[0])))
    top, right = round(6 * factor), max(right, round(10 * factor))
    return QRectF(left, top, max(size.width() - left - right, 1.0), max(size.height() - top - below, 1.0))


def padding(height: float, factor: float) -> float:
    """Return the padding in pixels at each end of the y range, for an area of this ``height``."""
    return min(PAD * factor, height / 6)


def round_ticks(low: float, high: float, pixels: float, pitch: float, *, whole: bool = False) -> list[Tick]:
    """Return round numbers in a range that is ``pixels`` long, at least ``pitch`` pixels apart."""
    values = ticks(low, high, max(int(pixels / pitch) + 1, 2), whole=whole)
    spacing = values[1] - values[0] if len(values) > 1 else 1.0
    return [(value, tick_text(value, spacing)) for value in values]


def y_ticks(axes: Axes, theme: Theme, factor: float, *, whole: bool = False) -> list[Tick]:
    """Return round numbers for the y axis, or only the highest if the digits of two ticks would touch."""
    (low, high), height = axes.y, axes.area.height()
    found = round_ticks(low, high, height, Y_PITCH * theme.type_unit(factor), whole=whole)
    line = theme.font("digits", factor).pixelSize() * 1.3
    touch = found and height * (found[-1][0] - found[0][0]) < line * (high - low)
    return found[-1:] if touch else found


def named_ticks(names: Sequence[str], metrics: QFontMetricsF, pitch: float) -> list[Tick]:
    """Return the names as ticks at 1, 2, ..., or every second, third, ... if they are wider than ``pitch`` pixels."""
    widest = max((metrics.horizontalAdvance(name) for name in names), default=0.0)
    every = max(int(-(-(widest + 4) // max(pitch, 1.0))), 1)
    return [(place + 1.0, name) for place, name in enumerate(names) if place % every == 0]


def tick_text(value: float, spacing: float) -> str:
    """Return the text of the tick at ``value``, with as few digits as an axis with this ``spacing`` needs."""
    if abs(value) < spacing * 1e-6:
        return "0"
    # within five characters, like its neighbours
    small = spacing < 1e-4 and abs(value - float(f"{value:.1e}")) < spacing * 1e-6
    if abs(value) >= 1e7 or (value and abs(value) < 1e-4) or small:
        mantissa, exponent = f"{value:.1e}".split("e")
        text = f"{mantissa.removesuffix('.0')}e{int(exponent)}"
    else:
        decimals = next((n for n in range(7) if abs(round(spacing, n) - spacing) < 1e-9 * spacing), 7)
        text = f"{value:,.{decimals}f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
    return text.replace("-", MINUS)


def paint_axes(
    painter: QPainter,
    axes: Axes,
    theme: Theme,
    factor: float,
    x_ticks: Sequence[Tick],
    y_ticks: Sequence[Tick],
    labels: tuple[str, str],
) -> None:
    """Paint grid lines at the y ticks, the texts of all ticks, and the labels of both axes."""
    painter.setFont(theme.font("digits", factor))
    metrics, area = QFontMetricsF(painter.font()), axes.area
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    painter.setPen(QPen(theme.colour("border"), 1))
    heights = [(round(axes.at_y(value)), text) for value, text in y_ticks]
    for y, _ in heights:
        painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y))
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(theme.colour("muted"))
    line, offset = metrics.height(), round(4 * factor)
    for y, text in heights:
        place = QRectF(0, y - line / 2, area.left() - offset, line)
        painter.drawText(place, RIGHT, text)
    for value, text in x_ticks:
        rows = text.split("\n")
        wide = max(map(metrics.horizontalAdvance, rows)) + 2
        place = QRectF(axes.at_x(value) - wide / 2, area.bottom() + offset, wide, line * len(rows))
        painter.drawText(place, CENTRE, text)
    if labels[0]:
        place = QRectF(area.left(), area.bottom() + offset + line, area.width(), line)
        painter.drawText(place, CENTRE, labels[0])
    if labels[1]:
        painter.save()
        painter.translate(2, area.center().y())
        painter.rotate(-90)
        place = QRectF(-area.height() / 2, 0, area.height(), line)
        painter.drawText(place, CENTRE | int(Qt.TextFlag.TextDontClip), labels[1])
        painter.restore()
