"""The table widget, used as the tabular form of every plot and for the step detail."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from PySide6.QtCore import QEvent, QItemSelectionModel, QModelIndex, QRect, QRectF, Qt, Signal, Slot
from PySide6.QtGui import QFontMetrics, QGuiApplication, QKeyEvent, QKeySequence, QPainter
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView

from app.plotting.table_model import Column, Rows, TableModel
from app.plotting.table_painter import TablePainter
from app.theme.painted_ahead import PaintedAhead
from app.theme.styled import Styled
from grpo_core.text import tr

LARGEST = (1 << 24) - 1
"""Maximum height of a widget in Qt, in pixels."""


class TableTwin(Styled, PaintedAhead, QTableView):
    """A sortable table of numbers. Copied rows are tab-separated text at full precision.

    Attributes:
        table: the model.
        cells: the painter of the cells in the current theme and scale.

    Signals:
        selected: the user has selected this row of the data.
        activated_cell: the user has pressed Return or E, or double-clicked, on this cell (row of the data, key of the
            column).
    """

    selected = Signal(int)
    activated_cell = Signal(int, str)

    def __init__(self, columns: Sequence[Column] = (), title: str = tr("Table"), *, stretched: bool = False) -> None:
        """``stretched``: whether the last column fills the remaining width."""
        super().__init__()
        self._filling = False
        self._fitted: tuple[object, ...] = ()
        self._head: int | None = None
        """Height of the header in the current style. Qt would measure all titles again after each change of a cell."""
        self.table = TableModel(columns, self)
        self.setModel(self.table)
        self.setAccessibleName(title)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setCornerButtonEnabled(False)
        self.setTabKeyNavigation(False)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.verticalHeader().hide()
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        header = self.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        header.setHighlightSections(False)
        header.setStretchLastSection(stretched)
        header.setMinimumSectionSize(8)  # width of a column with a single digit
        header.setSortIndicatorClearable(True)
        header.setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
        self._compact = False
        self.setSortingEnabled(True)
        self.doubleClicked.connect(self._activate)
        self.selectionModel().currentRowChanged.connect(self._on_row)
        self._apply_style()

    # -- interface for panels ------------------------------------------------------------------------------------------

    def set_columns(self, columns: Sequence[Column]) -> None:
        """Replace the columns and remove all rows."""
        if tuple(columns) != self.table.columns:
            self.table.set_columns(columns)
            self.horizontalHeader().setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
            self._apply_style()

    def set_rows(self, rows: Rows) -> None:
        """Replace the rows, keeping the sort order and the selection.

        If the current row is removed, Qt selects the next one. No signal is emitted then, since the user has not
        selected it.
        """
        self._filling = True
        self.note_change()
        try:
            self.table.set_rows(rows)
        finally:
            self._filling = False

    def set_summary(self, sentence: str) -> None:
        """Set the accessible summary, one sentence that says what the table shows."""
        if sentence != self.accessibleDescription():
            self.setAccessibleDescription(sentence)

    def set_compact(self, on: bool) -> None:
        """Set whether to reduce the row height, so that more rows fit into a short panel."""
        if on != self._compact:
            self._compact = on
            self._set_row_height()

    def _set_row_height(self) -> None:
        space = (2 if self._compact else 7) * self.factor
        self.verticalHeader().setDefaultSectionSize(round(self.cells.metrics.height() + space))

    def end_with_rows(self, space: int = LARGEST) -> None:
        """Limit the height to that of all rows, so that the widget below is immediately below the last row.

        If they do not fit into ``space`` pixels, limit it to as many whole rows as do, but at least one.
        """
        if self._head is None:
            self._head = self.horizontalHeader().sizeHint().height()
        head = self._head + 2 * self.frameWidth()
        row = self.verticalHeader().defaultSectionSize()
        rows = min(self.table.rowCount(), max((space - head) // row, 1))
        self.setMaximumHeight(min(head + rows * row, LARGEST))

    def select_row(self, row: int | None) -> None:
        """Select a row of the data without emitting a signal."""
        place = None if row is None else self.table.place_of(row)
        chosen = self.selectionModel()
        if place is None:
            if chosen.hasSelection():
                chosen.clear()
            return
        if self.currentIndex().row() == place and chosen.isRowSelected(place, QModelIndex()):
            return
        blocked = chosen.blockSignals(True)
        flags = QItemSelectionModel.SelectionFlag
        index = self.table.index(place, max(self.currentIndex().column(), 0))
        chosen.setCurrentIndex(index, flags.ClearAndSelect | flags.Rows)
        chosen.blockSignals(blocked)
        self.scrollTo(index)
        self.note_change()
        self.viewport().update()

    def current_cell(self) -> tuple[int, str] | None:
        """Return the current cell as (row of the data, key of the column), or None."""
        index = self.currentIndex()
        return (self.table.row_at(index.row()), self.table.columns[index.column()].key) if index.isValid() else None

    def explain_current(self) -> None:
        cell = self.current_cell()
        if cell is not None:
            self.activated_cell.emit(*cell)

    def copy(self) -> None:
        """Copy the selected rows, or all rows if none is selected, to the clipboard as tab-separated text."""
        places = sorted(index.row() for index in self.selectionModel().selectedRows())
        QGuiApplication.clipboard().setText(self.table.tsv(places or range(self.table.rowCount())))

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        self._head = None

    # -- drawing ------------------------------------------------------------------------------------------------------

    def _apply_style(self) -> None:
        self.table.set_look(self.theme, self.factor)
        self.cells = TablePainter(self.table, self.theme, self.factor)
        titles = self.theme.font("digits", self.factor).pixelSize()
        # for presenting mode, since the style sheet has the usual size
        larger = titles > self.theme.font("small", self.factor).pixelSize()
        sheet = f"QHeaderView::section {{ font-size: {titles}px; }}" if larger else ""
        if sheet != self.horizontalHeader().styleSheet():
            self.horizontalHeader().setStyleSheet(sheet)
        self._set_row_height()
        small, metrics = round(8 * self.factor), QFontMetrics(self.theme.font("digits", self.factor))
        digit = self.cells.metrics.horizontalAdvance("0")
        self._full_widths = [
            round(max(what.chars * digit, metrics.horizontalAdvance(what.title) + small) + 2 * small * 0.7)
            for what in self.table.columns
        ]
        self._least_widths = [0] * len(self._full_widths)
        self._fitted, self._head = (), None
        for n, width in enumerate(self._full_widths):
            self.setColumnWidth(n, width)

    def set_least_texts(self, texts: Mapping[str, str]) -> None:
        """Set the text that each column must be wide enough for, by the column's key: cells of a row below the table.

        The displayed widths change at the next :meth:`fit_columns`.
        """
        pad = 16 * self.factor
        wide = {key: math.ceil(self.cells.metrics.horizontalAdvance(text) + pad) for key, text in texts.items()}
        self._least_widths = [wide.get(column.key, 0) for column in self.table.columns]

    def full_width(self, column: int) -> int:
        """Return the width in pixels that a column needs, shown or hidden, for its digits, its title and the text
        below."""
        return max(self._full_widths[column], self._least_widths[column])

    def fit_columns(self, order: Sequence[int], space: int | None = None) -> list[int]:
        """Show as many columns as fit into ``space`` pixels, and return the indices of the hidden ones.

        By default, ``space`` is the width of the table without that of a scroll bar, whether or not it has one, so that
        no column appears or disappears with it.

        Columns are chosen in the priority ``order``. If some are hidden, the others share the remaining width. If only
        one fits, it is shrunk to ``space`` if necessary.
        """
        if space is None:
            space = self.width() - 2 * self.frameWidth() - self.verticalScrollBar().sizeHint().width()
        fitting, left = set[int](), space
        for n in order:
            if fitting and self.full_width(n) > left:
                break
            fitting.add(n)
            left -= self.full_width(n)
        widths = {n: self.full_width(n) if len(fitting) > 1 else min(self.full_width(n), space) for n in fitting}
        hidden = [n for n in range(len(self.table.columns)) if n not in fitting]
        for n in range(len(self.table.columns)):
            if self.isColumnHidden(n) != (n in hidden):
                self.setColumnHidden(n, n in hidden)
        fitted = (space, tuple(sorted(fitting)), tuple(widths[n] for n in sorted(fitting)))
        if fitted != self._fitted:  # otherwise the widths set by the user are kept
            self._fitted = fitted
            spare = max(left, 0) if hidden else 0
            for place, n in enumerate(sorted(fitting)):
                share = spare * (place + 1) // len(fitting) - spare * place // len(fitting)
                self.setColumnWidth(n, widths[n] + share)
        return hidden

    def paint(self, painter: QPainter, area: QRect) -> None:
        """Paint all cells in one loop, column by column.

        This takes half the time of Qt's delegates, which are called for each cell.
        """
        painter.fillRect(area, self.viewport().palette().color(self.viewport().backgroundRole()))
        count = self.table.rowCount()
        first, last = self.rowAt(max(area.top(), 0)), self.rowAt(area.bottom())
        if first < 0 or not count:
            return
        last = count - 1 if last < 0 else last
        rows = [(place, float(self.rowViewportPosition(place))) for place in range(first, last + 1)]
        columns = [
            (n, float(self.columnViewportPosition(n)), float(self.columnWidth(n)))
            for n in range(len(self.table.columns))
            if not self.isColumnHidden(n)
        ]
        columns = [(n, x, w) for n, x, w in columns if x <= area.right() and x + w >= area.left()]
        if not columns:
            return
        selection = self.selectionModel()
        left, right = min(x for _, x, _ in columns), max(x + w for _, x, w in columns)
        high = float(self.rowHeight(first))
        strips = [QRectF(left, top, right - left, high) for _, top in rows]
        chosen = [selection.isRowSelected(place, QModelIndex()) for place, _ in rows]
        for strip, marked in zip(strips, chosen, strict=True):
            if marked:
                painter.fillRect(strip, self.theme.faint("text", 0.06))
        for n, x, w in columns:
            self.cells.paint_column(painter, n, x, w, high, rows)
        for which in set(chosen):
            some = [strip for strip, marked in zip(strips, chosen, strict=True) if marked is which]
            self.cells.paint_lines(painter, some, chosen=which)
        current = self.currentIndex()
        if current.isValid() and (self.hasFocus() or self.viewport().hasFocus()):
            self.cells.paint_focus(painter, QRectF(self.visualRect(current)))

    # -- input --------------------------------------------------------------------------------------------------------

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_E) and not event.modifiers():
            self._activate(self.currentIndex())
        else:
            super().keyPressEvent(event)

    def keyboardSearch(self, search: str) -> None:
        """Do nothing, because letters are commands here rather than search text."""

    @Slot(QModelIndex)
    def _activate(self, index: QModelIndex) -> None:
        if index.isValid():
            self.activated_cell.emit(self.table.row_at(index.row()), self.table.columns[index.column()].key)

    @Slot(QModelIndex, QModelIndex)
    def _on_row(self, current: QModelIndex, previous: QModelIndex) -> None:
        if current.isValid() and not self._filling:
            self.selected.emit(self.table.row_at(current.row()))
