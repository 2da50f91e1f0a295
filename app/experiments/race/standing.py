"""The ranking of a race, one row per algorithm, and below it the row for the selected one of its runs."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSignalBlocker, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSpinBox, QWidget

from app.boxes import across
from app.experiments.race.results import COLUMNS
from app.plotting.table_twin import TableTwin
from app.theme.labels import Label, allow, plain_tip
from app.widgets.calm import push_button
from grpo_core.text import listed, tr

FIRST = 4
"""Number of columns that are shown at first."""
BEHIND_BY = ("behind", "behind_low", "behind_high")
"""Columns with the difference that the headline of a race states."""
REWARD = 1
"""Index of the column by which the ranking is initially sorted, best algorithm first."""


class RaceStanding(TableTwin):
    """The summary table of a race, which shows as many columns as fit, and only the first unless it ``shows_all``."""

    def __init__(self) -> None:
        self.shows_all = False
        super().__init__(COLUMNS, tr("Standing of the race"))
        self.sortByColumn(REWARD, Qt.SortOrder.DescendingOrder)

    def fit(self) -> None:
        """Show as many columns as fit, starting from the left. The tooltip names the hidden columns."""
        wanted = [*range(FIRST)]
        if self.shows_all:  # in a narrow panel, the numbers of the headline before all others
            wanted = sorted(range(len(COLUMNS)), key=lambda n: COLUMNS[n].key not in ("name", *BEHIND_BY))
        hidden = self.fit_columns(wanted)
        names = listed(COLUMNS[n].title for n in hidden)
        told = tr("In a wider panel: {names}.") if self.shows_all else tr("Set up shows more: {names}.")
        self.setToolTip(plain_tip(told.format(names=names) if names else ""))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.fit()


SUFFIX = tr(", median")


class RunRow(QWidget):
    """The name of an algorithm, a field for the index of the seed, and a button."""

    def __init__(self) -> None:
        super().__init__()
        self.name = Label()
        self.seed = QSpinBox()
        self.seed.setAccessibleName(tr("Seed of the run that opens"))
        self.seed.setToolTip(
            tr("Choose one of the runs; a click on a line or a row chooses the one with the median reward")
        )
        self.seed.setPrefix(tr("seed "))
        self.seed.setKeyboardTracking(False)
        tip = tr(
            "A new run with this seed: trained as long as the race, it repeats the race's run, bit for bit on the same "
            "kind of processor (Return)"
        )
        self.open = push_button(tr("Open this run"), tip)
        self.open.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        across((self.name, 1), self.seed, self.open, on=self, margins=(8, 4, 8, 2), spacing=8)
        self._fit()

    def show_run(self, text: str, place: int, seeds: int, *, median: bool = False) -> None:
        """Offer a run to open. ``seeds`` is the number of seeds; if it is 0, there is nothing to open."""
        allow(self, "" if seeds else tr("The race has no run yet."))
        self.name.setText(text)
        with QSignalBlocker(self.seed):
            self.seed.setRange(0, max(seeds - 1, 0))
            self.seed.setValue(place)
            self.seed.setSuffix(SUFFIX if median else "")
        self.name.setToolTip(plain_tip(text))

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange) and hasattr(self, "open"):
            self._fit()

    def _fit(self) -> None:
        """Set a width that fits the seed with its suffix, so that nothing moves while the user steps through seeds."""
        metrics = self.seed.fontMetrics()
        # sizes do not include the padding of the style sheet
        self.seed.lineEdit().setTextMargins(round(0.35 * metrics.height()), 0, 0, 0)
        self.seed.setFixedWidth(
            metrics.horizontalAdvance(tr("seed 000{suffix}").format(suffix=SUFFIX)) + round(2.6 * metrics.height())
        )
