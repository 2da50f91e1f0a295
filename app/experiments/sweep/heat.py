"""A sweep of two settings as a table.

Cells show the final median or mean, and the tint of a cell depends on this value.
"""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QModelIndex, QPersistentModelIndex, Qt, Signal, Slot
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence, QPainter, QPen
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableWidget,
    QTableWidgetItem,
    QWidget,
)

from app.experiments.sweep.results import DIVERGED, TITLES, UNITS, SweepResults
from app.plotting.numbers import hover, plain, shown
from app.theme.labels import plain_tip
from app.theme.tokens import LIGHT, Theme
from grpo_core.text import listed, tr

PALEST, STRONGEST = 0.06, 0.75


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
            painter.setPen(QPen(table.theme.colour("selection"), table.theme.ring_width))
            painter.drawRect(option.rect.adjusted(1, 1, -2, -2))


class HeatTable(QTableWidget):
    """The table. Rows are values of the second setting; columns are values of the first.

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
        self.theme: Theme = LIGHT
        self.values = np.empty((0, 0))
        self.heads: tuple[list[str], list[str]] = ([], [])
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
        """Show the final median or mean of ``measure`` at every point of a sweep. None clears the table."""
        self.setFont(theme.font("digits", scale))
        self.horizontalHeader().setMinimumSectionSize(self.fontMetrics().horizontalAdvance("00.000"))
        self.verticalHeader().setMinimumSectionSize(self.fontMetrics().height() + 2)
        self.setAccessibleName(tr("Final {titles} over two settings").format(titles=TITLES[measure]))
        self.theme, self.values, self.heads = theme, np.empty((0, 0)), ([], [])
        self.setRowCount(0)
        if results is not None:
            over, across, rows = results.sweep.over, results.sweep.across, results.sweep.rows
            self.values = np.array([results.final(measure, row).middle for row in range(len(rows))])
            self.heads = [over.named(x) for x in over.values], [across.named(x) if across else "" for x in rows]
        self.setRowCount(self.values.shape[0])
        self.setColumnCount(self.values.shape[1])
        self.setHorizontalHeaderLabels(self.heads[0])
        self.setVerticalHeaderLabels(self.heads[1])
        for row, column in np.ndindex(self.values.shape):
            come = results is not None and (column, row) in results.done
            self.setItem(row, column, self._cell(row, column, measure, DIVERGED if come else tr("not computed yet")))

    def _cell(self, row: int, column: int, measure: str, absent: str) -> QTableWidgetItem:
        """Create a cell. ``absent``: the reason why its value may be missing."""
        value = float(self.values[row, column])
        place = listed(side for side in (self.heads[0][column], self.heads[1][row]) if side)
        reading = hover(value, UNITS[measure]) if np.isfinite(value) else absent
        cell = QTableWidgetItem(shown(value))
        cell.setFlags(Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable)
        cell.setToolTip(plain_tip(f"{place}: {reading}"))
        cell.setData(Qt.ItemDataRole.AccessibleTextRole, f"{place}, {TITLES[measure]} {shown(value)}")
        cell.setTextAlignment(Qt.AlignmentFlag.AlignCenter)
        if np.isfinite(value):
            known = self.values[np.isfinite(self.values)]
            low, high = float(known.min()), float(known.max())
            share = (value - low) / (high - low) if high > low else 0.0
            fill = self.theme.faint(measure, PALEST + (STRONGEST - PALEST) * share)
            cell.setBackground(fill)
            cell.setForeground(self.theme.on(fill))
        return cell

    def show_chosen(self, x: float, row: int) -> None:
        """Mark the cell at the selected position and row without emitting a signal."""
        index = self.model().index(row, round(x))
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
        columns, rows = self.heads
        lines = ["\t".join(["", *columns])]
        lines += ["\t".join([name, *map(plain, own)]) for name, own in zip(rows, self.values.tolist(), strict=True)]
        return "\n".join(lines) + "\n"

    @Slot(QModelIndex, QModelIndex)
    def _on_current(self, current: QModelIndex, before: QModelIndex) -> None:
        if current.isValid():
            self.picked.emit(float(current.column()), current.row())

    @Slot(QModelIndex)
    def _on_double(self, index: QModelIndex) -> None:
        self.activated_place.emit(float(index.column()))
