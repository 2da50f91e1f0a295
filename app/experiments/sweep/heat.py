"""A sweep of two settings as a table.

Cells show the final median or mean, and the tint of a cell depends on this value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt, Signal, Slot
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence, QPainter, QPen
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QWidget,
)

from app.experiments.sweep.results import DIVERGED, TITLES, UNITS, SweepResults
from app.plotting.numbers import hover, plain, shown
from app.theme.labels import plain_tip
from app.theme.tokens import LIGHT, Theme
from grpo_core.text import listed, tr

Index = QModelIndex | QPersistentModelIndex
PALEST, STRONGEST = 0.06, 0.75
ROLE = Qt.ItemDataRole


class HeatModel(QAbstractTableModel):
    """The model of the table. Rows are values of the second setting; columns are values of the first."""

    def __init__(self, parent: Any = None) -> None:
        super().__init__(parent)
        self.theme: Theme = LIGHT
        self.measure = "reward"
        self.results: SweepResults | None = None
        self.values = np.empty((0, 0))
        self.chosen = (0, 0)

    def show_results(self, results: SweepResults | None, measure: str, theme: Theme) -> None:
        """Show the final median or mean of ``measure`` at every point of a sweep. None clears the table."""
        self.beginResetModel()
        self.results, self.measure, self.theme = results, measure, theme
        rows = range(len(results.sweep.rows)) if results is not None else ()
        middles = [results.final(measure, row).middle for row in rows] if results is not None else []
        self.values = np.array(middles).reshape(len(rows), -1) if middles else np.empty((0, 0))
        self.endResetModel()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else self.values.shape[0]

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else self.values.shape[1]

    def data(self, index: Index, role: int = ROLE.DisplayRole) -> Any:
        value = float(self.values[index.row(), index.column()])
        if role == ROLE.DisplayRole:
            return shown(value)
        if role == ROLE.ToolTipRole:
            reading = hover(value, UNITS[self.measure]) if np.isfinite(value) else self._why_none(index)
            return plain_tip(f"{self.place(index.row(), index.column())}: {reading}")
        if role == ROLE.AccessibleTextRole:
            return f"{self.place(index.row(), index.column())}, {TITLES[self.measure]} {shown(value)}"
        if role == ROLE.TextAlignmentRole:
            return int(Qt.AlignmentFlag.AlignCenter)
        if role in (ROLE.BackgroundRole, ROLE.ForegroundRole) and np.isfinite(value):
            fill = self.theme.faint(self.measure, self._strength(value))
            return fill if role == ROLE.BackgroundRole else self.theme.on(fill)
        return None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = ROLE.DisplayRole) -> Any:
        if self.results is None or role != ROLE.DisplayRole:
            return None
        sweep = self.results.sweep
        if orientation is Qt.Orientation.Horizontal:
            return sweep.over.named(sweep.over.values[section])
        return sweep.across.named(sweep.rows[section]) if sweep.across is not None else ""

    def place(self, row: int, column: int) -> str:
        """Return the two setting values of a cell as text."""
        sides = (
            self.headerData(section, way)
            for section, way in ((column, Qt.Orientation.Horizontal), (row, Qt.Orientation.Vertical))
        )
        return listed(side for side in sides if side)

    def _why_none(self, index: Index) -> str:
        come = self.results is not None and (index.column(), index.row()) in self.results.done
        return DIVERGED if come else tr("not computed yet")

    def _strength(self, value: float) -> float:
        known = self.values[np.isfinite(self.values)]
        low, high = float(known.min()), float(known.max())
        return PALEST + (STRONGEST - PALEST) * ((value - low) / (high - low) if high > low else 0.0)


class _Tinted(QStyledItemDelegate):
    """Delegate that paints tinted cells. The selected cell has a ring, because a fill would hide the tint."""

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        chosen = bool(option.state & QStyle.StateFlag.State_Selected)
        option.state = option.state & ~(QStyle.StateFlag.State_Selected | QStyle.StateFlag.State_HasFocus)
        super().paint(painter, option, index)
        if chosen:
            table = self.parent()
            assert isinstance(table, HeatTable)
            theme = table.heat.theme
            painter.setPen(QPen(theme.colour("selection"), theme.ring_width))
            painter.drawRect(option.rect.adjusted(1, 1, -2, -2))


class HeatTable(QTableView):
    """The view of the table.

    Signals:
        picked: emitted with the position and row of the cell to which the user moved.
        activated_place: emitted when a cell is activated by Return or a double click.
        explain_wanted: emitted when the E key is pressed.
    """

    picked = Signal(float, int)
    activated_place = Signal(float)
    explain_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(tr("Results over two settings"))
        self.heat = HeatModel(self)
        self.setModel(self.heat)
        self.setShowGrid(False)
        self.setTabKeyNavigation(False)
        self.setCornerButtonEnabled(False)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        for header in (self.horizontalHeader(), self.verticalHeader()):
            header.setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
            header.setHighlightSections(False)
            header.setSectionsClickable(False)
        self.setItemDelegate(_Tinted(self))
        self.selectionModel().currentChanged.connect(self._on_current)
        self.doubleClicked.connect(self._on_double)

    def show_results(self, results: SweepResults | None, measure: str, theme: Theme, scale: float) -> None:
        """Show the final medians or means of a sweep of two settings."""
        self.setFont(theme.font("digits", scale))
        self.horizontalHeader().setMinimumSectionSize(self.fontMetrics().horizontalAdvance("00.000"))
        self.verticalHeader().setMinimumSectionSize(self.fontMetrics().height() + 2)
        self.setAccessibleName(tr("Final {titles} over two settings").format(titles=TITLES[measure]))
        self.heat.show_results(results, measure, theme)

    def show_chosen(self, x: float, row: int) -> None:
        """Mark the cell at the selected position and row without emitting a signal."""
        index = self.heat.index(row, round(x))
        if index.isValid() and index != self.currentIndex():
            blocked = self.selectionModel().blockSignals(True)
            self.setCurrentIndex(index)
            self.selectionModel().blockSignals(blocked)
            self.viewport().update()

    def explain_current(self) -> None:
        """Request an explanation, as the E key does. Return or a double click opens a run instead."""
        self.explain_wanted.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy):
            QGuiApplication.clipboard().setText(self.tsv())
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.currentIndex().isValid():
            self.activated_place.emit(float(self.currentIndex().column()))
        else:
            super().keyPressEvent(event)

    def keyboardSearch(self, search: str) -> None:
        """Do nothing, because letter keys are commands here rather than a search."""

    def tsv(self) -> str:
        """Return all numbers at full precision as tab-separated values, with both headers."""
        heat, across = self.heat, Qt.Orientation.Horizontal
        lines = ["\t".join(["", *(str(heat.headerData(n, across)) for n in range(heat.columnCount()))])]
        for row, values in enumerate(heat.values.tolist()):
            lines.append("\t".join([str(heat.headerData(row, Qt.Orientation.Vertical)), *map(plain, values)]))
        return "\n".join(lines) + "\n"

    @Slot(QModelIndex, QModelIndex)
    def _on_current(self, current: QModelIndex, before: QModelIndex) -> None:
        if current.isValid():
            self.picked.emit(float(current.column()), current.row())

    @Slot(QModelIndex)
    def _on_double(self, index: QModelIndex) -> None:
        self.activated_place.emit(float(index.column()))
