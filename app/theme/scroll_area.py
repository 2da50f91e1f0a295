"""Scroll areas that are invisible unless their content does not fit."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QScrollArea, QWidget


def plain_scroll_area(widget: QWidget | None = None, *, bars: bool = True) -> QScrollArea:
    """Return a frameless area around ``widget`` that takes any width and is skipped by Tab.

    Args:
        widget: its content; it can also be set later.
        bars: whether it has a vertical scroll bar; without one it only scrolls to the focused widget.
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
