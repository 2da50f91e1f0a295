"""Scroll areas that are seen only where something does not fit."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QScrollArea, QWidget


def plain_scroll_area(widget: QWidget | None = None, *, bars: bool = True) -> QScrollArea:
    """An area around ``widget`` that is as wide as it is given, without a frame, and passed over by Tab.

    Args:
        widget: what it holds; it can also be set later.
        bars: whether it has a bar to scroll down; without one only what has the focus is scrolled to.
    """
    area = QScrollArea()
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setWidgetResizable(True)
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    if not bars:
        area.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    if widget is not None:
        area.setWidget(widget)
    return area
