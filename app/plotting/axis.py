"""Plot axes with round ticks, real minus signs, a light grid, and ranges that do not jump."""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyqtgraph as pg
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QPen

from app.plotting.numbers import MINUS
from app.plotting.ranges import ticks
from app.theme.tokens import Theme


@dataclass(frozen=True, kw_only=True)
class Scale:
    """The range and labels of one axis of a plot.

    Attributes:
        label: the label in words; may be empty if the title has it.
        unit: such as "nats"; empty for a pure number.
        low, high: a fixed end, or None to follow the data with hysteresis.
        whole: whether ticks are whole numbers only, as for updates and actions.
    """

    label: str = ""
    unit: str = ""
    low: float | None = None
    high: float | None = None
    whole: bool = False

    @property
    def text(self) -> str:
        """Label and unit as one phrase."""
        return f"{self.label} ({self.unit})" if self.label and self.unit else self.label or self.unit


class Axis(pg.AxisItem):  # type: ignore[misc]
    """A left or bottom axis.

    Attributes:
        what: the range and labels that it shows.
        number_of: maps a whole place to its displayed number, or to None for no number; None to display the places
            themselves.
        named: whether to reserve the width of a title even without one, to be as wide as an axis above or below.
        bare: whether it has no numbers, and hardly any height, because an axis below has the same ones.
    """

    def __init__(self, orientation: str, scale: Scale) -> None:
        self._reach, self._spacing, self._line = 0.0, 60.0, 14.0
        self.number_of: Callable[[int], int | None] | None = None
        self.named = self.bare = False
        super().__init__(orientation, showValues=True, maxTickLength=0)
        self.what = scale
        self.enableAutoSIPrefix(False)
        self.setStyle(tickLength=0, autoExpandTextSpace=False)

    def apply_style(self, theme: Theme, scale: float, *, grid: bool) -> None:
        """Set the theme and the scale."""
        font = theme.font("digits", scale)
        self.setTickFont(font)
        self.setTextPen(theme.colour("muted"))
        self.setPen(pg.mkPen(None))
        self.setTickPen(QPen(theme.colour("border"), 1))
        self.setGrid(255 if grid else False)
        label = {"color": theme.hex("muted"), "font-size": f"{font.pixelSize()}px"}
        if self.what.text:
            self.setLabel(html.escape(self.what.text, quote=False), **label)  # axis labels are laid out as HTML
            self.label.setFont(font)
        else:
            self.showLabel(False)
        self._spacing = (34.0 if self.orientation == "left" else 64.0) * theme.type_unit(scale)
        line = self._line = font.pixelSize() * 1.3
        if self.orientation == "left":
            self.setWidth(round(font.pixelSize() * 3.4 + 6 + (line if self.what.text or self.named else 0)))
        else:
            self.setStyle(showValues=not self.bare)
            self.setHeight(
                round((4 if self.bare else 10) * scale + (0 if self.bare else line * (1 + bool(self.what.text))))
            )
        self.setStyle(tickTextOffset=round(4 * scale))
        # Behind the data, since pyqtgraph puts its axes, and with them the grid, above the data.
        self.setZValue(-1000)
        self._reach = 32.0 * scale

    def boundingRect(self) -> QRectF:
        """Bounding box, enlarged because pyqtgraph drops labels that leave it, including those at both ends."""
        box: QRectF = super().boundingRect()
        return box.adjusted(-self._reach, -self._reach, self._reach, self._reach)

    def drawPicture(self, p: QPainter, axisSpec: Any, tickSpecs: Any, textSpecs: Any) -> None:
        p.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # in any language
        super().drawPicture(p, axisSpec, tickSpecs, textSpecs)

    def tickValues(self, minVal: float, maxVal: float, size: float) -> list[tuple[float, list[float]]]:
        if self._tickLevels is not None:
            levels: list[tuple[float, list[float]]] = super().tickValues(minVal, maxVal, size)
            return levels
        low, high = sorted((minVal, maxVal))
        values = ticks(low, high, max(int(size / self._spacing) + 1, 2), whole=self.what.whole)
        if self.orientation == "left" and size * (values[-1] - values[0] if values else 0) < self._line * (high - low):
            values = values[-1:]  # so low that two rows of digits would touch
        return [(values[1] - values[0] if len(values) > 1 else 1.0, values)]

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        if self.number_of is not None:
            numbers = [self.number_of(round(value)) for value in values]
            return ["" if number is None else tick_text(number, 1.0) for number in numbers]
        return [tick_text(value * scale, spacing * scale) for value in values]


def tick_text(value: float, spacing: float) -> str:
    """Text of the tick at ``value`` on an axis with this ``spacing``, with as few digits as possible."""
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
