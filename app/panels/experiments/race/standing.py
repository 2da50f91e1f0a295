"""The standing: one row an algorithm, sortable, copied with every digit."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QWidget

from app.panels.experiments.race.results import COLUMNS
from app.plotting.table_twin import TableTwin
from grpo_core.text import tr


class RaceStanding(TableTwin):
    """The summary of a race.

    Signals:
        opened: Return or a double click on a row of the data.
    """

    opened = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(COLUMNS, tr("RaceStanding of the race"), parent)
        self.doubleClicked.connect(self._on_twice)

    def explain_current(self) -> None:
        """Nothing: these numbers belong to many runs; one of them can be opened."""

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.currentIndex().isValid():
            self.opened.emit(self.table.row_at(self.currentIndex().row()))
        else:
            super().keyPressEvent(event)

    @Slot(QModelIndex)
    def _on_twice(self, index: QModelIndex) -> None:
        self.opened.emit(self.table.row_at(index.row()))
