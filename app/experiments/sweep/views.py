"""The charts of a sweep, grouped into views of which one is shown at a time, and the table of two settings."""

from __future__ import annotations

import dataclasses

import numpy as np
from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QSignalBlocker, Qt, Signal, Slot
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence, QPainter
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QTableWidget,
    QTableWidgetItem,
    QWidget,
)

from app.boxes import across
from app.experiments.sweep.chart import SweepChart
from app.experiments.sweep.pictures import (
    SweepState,
    frontier_picture,
    setting_picture,
    training_picture,
    training_title,
)
from app.experiments.sweep.plan import name
from app.experiments.sweep.results import DIVERGED, TITLES, UNITS, SweepResults
from app.plotting.line_data import LinePicture
from app.plotting.numbers import hover, plain, shown
from app.plotting.twin_stack import TwinStack
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
            painter.setPen(table.theme.ring)
            painter.drawRect(option.rect.adjusted(1, 1, -2, -2))


class HeatTable(QTableWidget):
    """The table. Rows are values of the second setting; columns are values of the first.

    Signals:
        picked: emitted with the position and row of the cell to which the user moved.
        explain_wanted: emitted when the E key is pressed.
    """

    picked = Signal(float, int)
    explain_wanted = Signal()

    def __init__(self) -> None:
        super().__init__()
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
        self.currentCellChanged.connect(self._on_current)

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
            with QSignalBlocker(self):
                self.setCurrentIndex(index)

    def explain_current(self) -> None:
        """Request an explanation, as the E key does. Return or a double click opens a run instead."""
        self.explain_wanted.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy):
            QGuiApplication.clipboard().setText(self.tsv())
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.currentIndex().isValid():
            self.doubleClicked.emit(self.currentIndex())  # it opens the run as well
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

    @Slot(int, int)
    def _on_current(self, row: int, column: int) -> None:
        if row >= 0:
            self.picked.emit(float(column), row)


FINAL, TRAINING, FRONTIER, SIDE, HEAT = "final", "training", "frontier", "side", "heat"
NAMES = {
    FINAL: tr("KL and reward"),
    TRAINING: tr("Over training"),
    FRONTIER: tr("Reward against KL"),
    SIDE: tr("Side by side"),
    HEAT: tr("Table of both"),
}
"""Displayed names of the views."""
MULTIPLES = 6
"""Maximum number of charts side by side."""
NARROW = 560
"""Minimum panel width at 100 % scale at which the chart over training fits next to two charts.

That chart also has a view of its own.
"""


class SweepViews(QWidget):
    """All charts of a sweep. The charts of one view are visible, side by side.

    Signals:
        picked: emitted with the position and row that the user selected.
        dragged: emitted with the position over which the pointer is dragged.
        open_wanted: emitted to open the run at the selected position.
        explain_wanted: emitted to explain the KL.
    """

    picked = Signal(float, int)
    dragged = Signal(float)
    open_wanted = Signal()
    explain_wanted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.kl, self.reward = SweepChart(_against("kl", ""), "grid"), SweepChart(_against("reward", ""), "grid")
        self.frontier = SweepChart(tr("Reward against KL"), "measure")
        self.training = SweepChart(tr("KL over training"), "updates")
        self.heat = HeatTable()
        self.multiples: list[SweepChart] = []
        self.twins: dict[SweepChart, TwinStack] = {}
        self.view, self.measure, self.tables = FINAL, "kl", False
        self._narrow = False
        self._side_by_side = 0
        self._row = across(on=self, margins=0, spacing=0)
        for chart in (self.kl, self.reward, self.frontier):
            self._row.addWidget(self._twin(chart), 1)
        self._row.addWidget(self.heat, 2)
        self._row.addWidget(self._twin(self.training), 1)
        self.heat.picked.connect(self.picked)
        self.heat.doubleClicked.connect(self.open_wanted)
        self.heat.explain_wanted.connect(self.explain_wanted)

    def _twin(self, chart: SweepChart) -> TwinStack:
        twin = self.twins[chart] = TwinStack(chart, headed=False)
        chart.picked.connect(self.picked)
        chart.dragged.connect(self.dragged)
        chart.activated.connect(self.open_wanted)
        chart.explain_wanted.connect(self.explain_wanted)
        return twin

    def choose(self, view: str, measure: str, *, tables: bool) -> None:
        """Show a view, with the given measure if the view has one.

        ``tables``: whether to show tables instead of charts.
        """
        self.view, self.measure = view, measure
        for chart, there in (
            (self.kl, view == FINAL),
            (self.reward, view == FINAL),
            (self.frontier, view == FRONTIER),
            (self.training, view == TRAINING or (view not in (SIDE, HEAT) and not self._narrow)),
        ):
            self.twins[chart].setVisible(there)
        self.heat.setVisible(view == HEAT)
        for number, chart in enumerate(self.multiples):
            self.twins[chart].setVisible(view == SIDE and number < self._side_by_side)
        if tables != self.tables:
            self.tables = tables
            for twin in self.twins.values():
                twin.toggle()

    # -- drawing -------------------------------------------------------------------------------------------------------

    def draw(self, state: SweepState, title: str, theme: Theme, scale: float) -> None:
        """Draw ``state`` in the front view. ``title`` names the swept setting."""
        self._narrow = self.width() < NARROW * scale
        results = state.results
        if self.view == SIDE:
            self._prepare_multiples(len(results.sweep.rows[:MULTIPLES]) if results is not None else 0)
        self.choose(self.view, self.measure, tables=self.tables)
        for twin in self.twins.values():
            twin.set_look(theme, scale)
        self.hold(state.x, state.row)
        if self.view == FINAL:
            for chart, measure in ((self.kl, "kl"), (self.reward, "reward")):
                self._show(chart, state, setting_picture(state, measure), _against(measure, title))
        elif self.view == FRONTIER:
            self._show(self.frontier, state, frontier_picture(state), self.frontier.title)
        elif self.view == HEAT:
            self.heat.show_results(results, self.measure, theme, scale)
            self.heat.show_chosen(state.x, state.row)
        elif self.view == SIDE:
            self._draw_side(state, title, scale)
        if self.twins[self.training].isVisibleTo(self):
            self._draw_training(state)
        for twin in self.twins.values():
            if twin.shows_table and twin.isVisibleTo(self):
                twin.refresh()

    def _draw_training(self, state: SweepState) -> None:
        measure = self.measure if self.view == TRAINING else "kl"
        picture = training_picture(state, measure, every=self.view == TRAINING)
        self._show(self.training, state, picture, training_title(state, measure))

    def _draw_side(self, state: SweepState, title: str, scale: float) -> None:
        if state.results is None:
            return
        pictures = [setting_picture(state, self.measure, only=row) for row in range(self._side_by_side)]
        top = max(picture.extent()[1] for picture in pictures)
        for row, (chart, picture) in enumerate(zip(self.multiples, pictures, strict=False)):
            value = name(state.results.sweep.rows[row])
            self.twins[chart].title.setText(value)
            self.twins[chart].title.setContentsMargins(round(12 * scale), 0, 0, 0)
            one_scale = dataclasses.replace(picture, span=(0.0, top))  # so that they can be compared
            words = tr("{against}, {value}").format(against=_against(self.measure, title), value=value)
            self._show(chart, state, one_scale, words)

    @staticmethod
    def _show(chart: SweepChart, state: SweepState, picture: LinePicture, title: str) -> None:
        chart.over = state.over
        chart.rows = len(state.results.sweep.rows) if state.results is not None else 1
        chart.title = title
        chart.setAccessibleName(title)
        if chart.axis == "updates":
            chart.set_cursor(None if state.own.cursor is None else float(state.own.cursor))
        elif chart.axis == "grid":
            chart.set_cursor(state.x if state.results is not None else None)
        chart.show_picture(picture)

    def _prepare_multiples(self, count: int) -> None:
        """Create further charts to show side by side, up to ``count``, one for each row."""
        self._side_by_side = count
        while len(self.multiples) < count:
            chart = SweepChart(_against("kl", ""), "grid")
            twin = self._twin(chart)
            twin.title.show()
            if self.tables:
                twin.toggle()
            self.multiples.append(chart)
            self._row.insertWidget(self._row.count() - 1, twin, 1)

    def hold(self, x: float, row: int) -> None:
        """Set the position and row from which the next key press continues. They are drawn with the next frame."""
        for chart in self.twins:
            chart.place, chart.row = x, row

    def focus_table(self, x: float, row: int) -> None:
        """Show the first visible chart as a table, and move the keyboard focus to the row of this position."""
        self.choose(self.view, self.measure, tables=True)
        table: QTableView = self.heat
        for chart, twin in self.twins.items():
            if twin.isVisible():
                twin.refresh()
                twin.table.select_row(round(x) + row * len(chart.over))
                table = twin.table
                break
        table.setFocus(Qt.FocusReason.OtherFocusReason)

    def set_stale(self, results: bool, course: bool) -> None:
        for chart in self.twins:
            chart.set_stale(course if chart is self.training else results)

    def describe(self, sentence: str, *, swept: bool, trained: bool) -> None:
        """Set the accessible summary of every chart, and the message shown instead of each chart without data."""
        for chart, twin in self.twins.items():
            twin.set_summary(sentence)
            there = swept or (trained and chart in (self.kl, self.training))
            chart.empty = None if there else tr("The results of each value appear here as they are computed.")
        self.heat.setAccessibleDescription(sentence)


def _against(measure: str, title: str) -> str:
    """Return the title of a chart of a measure against the setting called ``title``."""
    if not title:
        return tr("{measure} against the setting").format(measure=TITLES[measure])
    return tr("{measure} against {title}").format(measure=TITLES[measure], title=title)
