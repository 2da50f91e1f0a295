"""Removal of orphaned separator widgets between docks.

When docks are rearranged, Qt loses track of some and never deletes them.
"""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QMainWindow, QWidget

NAME = "qt_qmainwindow_extended_splitter"
"""The object name that Qt gives to the widget over a one-pixel separator."""


def delete_lost_separators(window: QMainWindow) -> None:
    """Delete the separators that Qt has lost track of. Qt shows each one still in use whenever it lays out the window.

    While a dock is being dragged, Qt keeps a second layout with its own separators, so nothing is deleted then.
    """
    layout = window.layout()
    if layout is None or not window.isVisible() or QApplication.mouseButtons() != Qt.MouseButton.NoButton:
        return
    separators = window.findChildren(QWidget, NAME, Qt.FindChildOption.FindDirectChildrenOnly)
    before = [separator for separator in separators if separator.isVisible()]
    for separator in separators:
        separator.hide()
    layout.invalidate()
    layout.activate()
    if not any(separator.isVisible() for separator in separators):  # it was not laid out
        for separator in before:
            separator.show()
        return
    for separator in separators:
        if not separator.isVisible():
            separator.deleteLater()
