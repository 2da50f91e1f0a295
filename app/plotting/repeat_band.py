"""The range of a run's repeats behind its curve, with their median."""

from __future__ import annotations

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGraphicsItem

from app.plotting.band import Ribbon
from app.theme.tokens import Theme

STRENGTH = 0.6
"""Opacity of the median."""


class RepeatBand(Ribbon):
    """The area between the lowest and the highest repeat, with their median. It is redrawn when updates are added."""

    def __init__(self, meaning: str) -> None:
        super().__init__(meaning)
        self._middle = pg.PlotCurveItem(connect="finite", skipFiniteCheck=False, antialias=True)
        self._middle.setParentItem(self)
        self._shown: object = None
        for item in (self, self._middle):
            item.setCacheMode(QGraphicsItem.CacheMode.DeviceCoordinateCache)

    def show_runs(self, values: np.ndarray | None) -> None:
        """Draw ``values`` (n, S) of S repeats at updates 1 to n. None clears the area.

        Passing the same array again costs nothing.
        """
        if values is self._shown:
            return
        self._shown = values
        if values is None or not len(values):
            self.clear_limits()
            self._middle.setData([], [])
            return
        x = np.arange(1.0, len(values) + 1)
        self.set_limits(x, values.min(axis=-1), values.max(axis=-1))
        self._middle.setData(x, np.median(values, axis=-1))

    def apply_style(self, theme: Theme, scale: float) -> None:
        """Set the theme and the scale."""
        super().apply_style(theme, scale)
        pen = theme.pen(self.meaning, 2.0 if theme.bold else 1.2 * scale, Qt.PenStyle.DashLine)
        pen.setColor(theme.faint(self.meaning, STRENGTH))
        self._middle.setPen(pen)
