"""Two axes around a view box, like pyqtgraph's PlotItem without menus, titles and the two spare axes."""

from __future__ import annotations

import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGraphicsGridLayout

from app.plotting.axis import Axis

AXIS_Z = 0.5


class Frame(pg.GraphicsWidget):  # type: ignore[misc]
    """The left and the bottom axis with their view box. It takes a fifth of a PlotItem's time to make.

    Attributes:
        view_box: where items live.
        layout: the grid that holds all three.
    """

    def __init__(self, left: Axis, bottom: Axis) -> None:
        super().__init__()
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # in any language
        self.view_box = pg.ViewBox(enableMenu=False)
        self.layout = QGraphicsGridLayout()
        self.layout.setSpacing(0)
        self.layout.setContentsMargins(1, 1, 1, 1)
        self.setLayout(self.layout)
        self.layout.addItem(self.view_box, 0, 1)
        for axis, row, column in ((left, 0, 0), (bottom, 1, 1)):
            self.layout.addItem(axis, row, column)
            axis.linkToView(self.view_box)
            axis.setZValue(AXIS_Z)
        self.layout.setRowStretchFactor(0, 100)
        self.layout.setColumnStretchFactor(1, 100)
