"""The ranking: one row per algorithm, best first. It can be sorted, and copied with all digits."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QWidget

from app.experiments.race.results import COLUMNS
from app.plotting.table_twin import TableTwin
from app.theme.labels import plain_tip
from grpo_core.text import listed, tr

FIRST = 4
"""Number of columns that are shown at first."""
REWARD = 1
"""Index of the column by which the ranking is initially sorted, best algorithm first."""


class RaceStanding(TableTwin):
    """The summary table of a race, which shows as many columns as fit.

    Signals:
        opened: emitted after Return or a double click on a data row.
    """

    opened = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        self._all = False
        super().__init__(COLUMNS, tr("Standing of the race"), parent)
        self.sortByColumn(REWARD, Qt.SortOrder.DescendingOrder)
        self.doubleClicked.connect(self._on_twice)

    def show_all(self, on: bool) -> None:
        """Set whether to show every column that fits, or only the first ones."""
        if on != self._all:
            self._all = on
            self.fit()

    def fit(self) -> None:
        """Show as many columns as fit, starting from the left. The tooltip names the hidden columns."""
        bar = self.verticalScrollBar().sizeHint().width()
        wanted = range(len(COLUMNS) if self._all else FIRST)
        hidden = self.fit_columns(wanted, self.width() - 2 * self.frameWidth() - bar)
        names = listed(COLUMNS[n].title for n in hidden)
        told = tr("In a wider panel: {names}.") if self._all else tr("Set up shows more: {names}.")
        self.setToolTip(plain_tip(told.format(names=names) if names else ""))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.fit()

    def explain_current(self) -> None:
        """Open a run of the current row: these numbers summarize many runs, and one run explains each of its own."""
        if self.currentIndex().isValid():
            self.opened.emit(self.table.row_at(self.currentIndex().row()))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.explain_current()
        else:
            super().keyPressEvent(event)

    @Slot(QModelIndex)
    def _on_twice(self, index: QModelIndex) -> None:
        self.opened.emit(self.table.row_at(index.row()))
