"""Counts how often a widget is asked to lay out its content."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject


class LayoutRequests(QObject):
    """Counts how often a widget is asked to lay out its content."""

    def __init__(self, watched: QObject) -> None:
        super().__init__(watched)
        self.count = 0
        watched.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        self.count += event.type() is QEvent.Type.LayoutRequest
        return False
