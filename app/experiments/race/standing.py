"""The ranking: one row per algorithm, best first. It can be sorted, and copied with all digits."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent

from app.experiments.race.results import COLUMNS
from app.plotting.table_twin import TableTwin
from app.theme.labels import plain_tip
from grpo_core.text import listed, tr

FIRST = 4
"""Number of columns that are shown at first."""
BEHIND_BY = ("behind", "behind_low", "behind_high")
"""Columns with the difference that the headline of a race states."""
REWARD = 1
"""Index of the column by which the ranking is initially sorted, best algorithm first."""


class RaceStanding(TableTwin):
    """The summary table of a race, which shows as many columns as fit."""

    def __init__(self) -> None:
        self._all = False
        super().__init__(COLUMNS, tr("Standing of the race"))
        self.sortByColumn(REWARD, Qt.SortOrder.DescendingOrder)

    def show_all(self, on: bool) -> None:
        if on != self._all:
            self._all = on
            self.fit()

    def fit(self) -> None:
        """Show as many columns as fit, starting from the left. The tooltip names the hidden columns."""
        wanted = [*range(FIRST)]
        if self._all:  # in a narrow panel, the numbers of the headline before all others
            wanted = sorted(range(len(COLUMNS)), key=lambda n: COLUMNS[n].key not in ("name", *BEHIND_BY))
        hidden = self.fit_columns(wanted)
        names = listed(COLUMNS[n].title for n in hidden)
        told = tr("In a wider panel: {names}.") if self._all else tr("Set up shows more: {names}.")
        self.setToolTip(plain_tip(told.format(names=names) if names else ""))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.fit()
