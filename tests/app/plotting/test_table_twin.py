"""The table: the content of its cells, sorting, copying, and its announcements."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRectF, Qt
from PySide6.QtGui import QGuiApplication, QImage, QPainter, QPaintEvent
from PySide6.QtTest import QAbstractItemModelTester
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem, QTableView
from pytestqt.qtbot import QtBot

from app.plotting.numbers import Missing
from app.plotting.plot import SeriesRows
from app.plotting.pyramid import Pyramid
from app.plotting.table_model import SORT_LIMIT, Column, Numbered, TableModel
from app.plotting.table_twin import TableTwin
from app.theme.tokens import DARK, LIGHT
from tests.app.painted import painted_words

COLUMNS = (
    Column("row", "i", decimals=0),
    Column("advantage", "A", kind="push", decimals=2),
    Column("clipped", "", kind="chip"),
    Column("kl", "KL", unit="nats"),
    Column("push", "push", kind="signed"),
)
ROWS = [
    (1, -1.75, "clipped", Missing("beta is 0"), 0.0),
    (2, 0.75, "", 0.1 + 0.2, 0.097),
    (3, 0.0, "", float("nan"), -0.026),
]


def shown(model: TableModel, column: int) -> list[str]:
    return [model.text(place, column) for place in range(model.rowCount())]


def table(qtbot: QtBot, make: type[TableTwin] = TableTwin) -> TableTwin:
    twin = make(COLUMNS, "Step detail")
    qtbot.addWidget(twin)
    twin.set_rows(ROWS)
    twin.resize(600, 200)
    twin.show()
    return twin


def test_columns_that_are_left_out_leave_their_room_to_the_others(qtbot: QtBot) -> None:
    twin = table(qtbot)
    usual = [twin.full_width(n) for n in range(len(COLUMNS))]
    room = sum(usual[:3]) + 7
    assert twin.fit_columns(range(len(COLUMNS)), room) == [3, 4]
    assert sum(twin.columnWidth(n) for n in range(3)) == room
    twin.set_look(DARK, 1.0)
    twin.fit_columns(range(len(COLUMNS)), room)
    assert sum(twin.columnWidth(n) for n in range(3)) == room, "in another theme too"
    assert all(0 <= twin.columnWidth(n) - usual[n] <= 3 for n in range(3))
    twin.setColumnWidth(0, 90)
    twin.fit_columns(range(len(COLUMNS)), room)
    assert twin.columnWidth(0) == 90, "as it was pulled"
    assert twin.fit_columns(range(len(COLUMNS)), sum(usual) + 50) == []
    assert [twin.columnWidth(n) for n in range(len(COLUMNS))] == usual


def test_cells_carry_glyphs_signs_and_colours() -> None:
    model = TableModel(COLUMNS)
    QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    model.set_rows(ROWS)
    assert shown(model, 1) == ["▼ −1.75", "▲ 0.75", "0.00"]
    assert shown(model, 3) == ["—", "0.300", "—"]
    assert shown(model, 4) == ["0.000", "+0.097", "−0.026"]
    foreground = model.data(model.index(0, 1), Qt.ItemDataRole.ForegroundRole)
    assert foreground == LIGHT.ink("push_down")


def test_hover_gives_full_precision_and_the_reason_for_a_gap() -> None:
    model = TableModel(COLUMNS)
    model.set_rows(ROWS)
    tip = Qt.ItemDataRole.ToolTipRole
    assert model.data(model.index(1, 3), tip) == "0.30000000000000004 nats"
    assert model.data(model.index(0, 3), tip) == "not computed: beta is 0"
    assert model.data(model.index(0, 3), Qt.ItemDataRole.AccessibleTextRole) == "KL not computed: beta is 0"


def test_sorting_puts_what_is_missing_last_both_ways() -> None:
    model = TableModel(COLUMNS)
    model.set_rows(ROWS)
    model.sort(3, Qt.SortOrder.AscendingOrder)
    assert model.row_at(0) == 1
    model.sort(3, Qt.SortOrder.DescendingOrder)
    assert model.row_at(0) == 1
    model.sort(1, Qt.SortOrder.DescendingOrder)
    assert [model.row_at(place) for place in range(3)] == [1, 2, 0]
    model.sort(-1)
    assert [model.row_at(place) for place in range(3)] == [0, 1, 2]


def test_new_rows_keep_the_order_that_was_chosen() -> None:
    model = TableModel(COLUMNS)
    QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    model.set_rows(ROWS)
    model.sort(1, Qt.SortOrder.AscendingOrder)
    model.set_rows([*ROWS, (4, -9.0, "", 0.0, 0.0)])
    assert model.row_at(0) == 3
    model.set_rows(ROWS[:2])
    assert shown(model, 1) == ["▼ −1.75", "▲ 0.75"]


def test_copying_gives_numbers_that_a_spreadsheet_reads(qtbot: QtBot) -> None:
    twin = table(qtbot)
    qtbot.keyClick(twin, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    qtbot.keyClick(twin, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    lines = QGuiApplication.clipboard().text().splitlines()
    assert lines[0].split("\t") == ["i", "A", "", "KL", "push"]
    assert lines[1].split("\t") == ["1", "-1.75", "clipped", "", "0.0"]
    assert float(lines[2].split("\t")[3]) == 0.1 + 0.2
    assert len(lines) == 4


def test_choosing_a_row_tells_the_row_of_the_data(qtbot: QtBot) -> None:
    twin = table(qtbot)
    twin.sortByColumn(1, Qt.SortOrder.DescendingOrder)
    told: list[int] = []
    twin.selected.connect(told.append)
    twin.select_row(1)
    assert told == []
    qtbot.keyClick(twin, Qt.Key.Key_Down)
    assert told == [2]
    assert twin.current_cell() == (2, "row")


def test_return_and_e_ask_for_the_cell_under_the_cursor(qtbot: QtBot) -> None:
    twin = table(qtbot)
    twin.select_row(0)
    qtbot.keyClick(twin, Qt.Key.Key_Right)
    for key in (Qt.Key.Key_E, Qt.Key.Key_Return):
        with qtbot.waitSignal(twin.activated_cell) as caught:
            qtbot.keyClick(twin, key)
        assert caught.args == [0, "advantage"]


def test_rows_and_columns_grow_with_the_scale_and_not_with_the_numbers(qtbot: QtBot) -> None:
    twin = table(qtbot)
    widths = [twin.columnWidth(n) for n in range(len(COLUMNS))]
    twin.set_rows([(100_000, -123.456, "clipped", 1e-9, 5.0)] * 3)
    assert [twin.columnWidth(n) for n in range(len(COLUMNS))] == widths
    twin.set_look(DARK, 2.0)
    assert all(twin.columnWidth(n) > 1.5 * width for n, width in enumerate(widths))
    image = twin.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
    assert image.width() == 600


def test_a_million_rows_are_shown_without_being_made(qtbot: QtBot) -> None:
    twin = TableTwin((Column("x", "update", decimals=0), Column("kl", "KL")))
    qtbot.addWidget(twin)
    twin.set_rows(SeriesRows([(Pyramid(np.arange(1_000_000.0)), 1.0)]))
    twin.table.sort(1, Qt.SortOrder.DescendingOrder)
    assert twin.table.rowCount() > SORT_LIMIT
    assert twin.table.text(999_999, 0) == "1,000,000"
    assert twin.table.row_at(0) == 0


def test_series_of_different_lengths_share_their_rows() -> None:
    rows = SeriesRows([(Pyramid(np.array([1.0, 2.0])), 1.0), (Pyramid(np.array([5.0])), 2.0)])
    assert [list(row) for row in rows] == [[1, 1.0, None], [2, 2.0, 5.0]]
    assert rows[-1] == rows[1]


class PaintedByQt(TableTwin):
    """A table that Qt paints, if ``on``, with its delegate."""

    on = False

    def paintEvent(self, event: QPaintEvent) -> None:
        if self.on:
            QTableView.paintEvent(self, event)
        else:
            super().paintEvent(event)


class Cell(QStyledItemDelegate):
    """A delegate that paints one cell as the table paints all of them in one loop."""

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        twin = self.parent()
        assert isinstance(twin, TableTwin)
        area, chosen = QRectF(option.rect), bool(option.state & QStyle.StateFlag.State_Selected)
        painter.save()
        if chosen:
            painter.fillRect(area, twin.theme.faint("text", 0.06))
        left, width, high = area.left(), area.width(), twin.rowHeight(index.row())
        twin.cells.paint_column(painter, index.column(), left, width, high, [(index.row(), area.top())])
        twin.cells.paint_lines(painter, [area], chosen=chosen)
        if option.state & QStyle.StateFlag.State_HasFocus:
            twin.cells.paint_focus(painter, area)
        painter.restore()


def chosen_with_the_keyboard(twin: TableTwin) -> None:
    twin.setFocus()
    twin.select_row(1)


def dark_and_large(twin: TableTwin) -> None:
    twin.set_look(DARK, 2.0)
    twin.select_row(2)


def too_narrow(twin: TableTwin) -> None:
    for n in range(len(COLUMNS)):
        twin.setColumnWidth(n, 40)


def scrolled(twin: TableTwin) -> None:
    twin.set_rows([(n, n - 5.0, "dead" if n % 2 else "", 0.1 * n, -0.5 * n) for n in range(40)])
    twin.setColumnHidden(1, True)
    twin.scrollTo(twin.table.index(20, 0))


DRESSED: dict[str, Callable[[TableTwin], object]] = {
    "as it is": lambda twin: None,
    "a row chosen, with the keyboard": chosen_with_the_keyboard,
    "dark and large": dark_and_large,
    "from right to left": lambda twin: twin.setLayoutDirection(Qt.LayoutDirection.RightToLeft),
    "too narrow": too_narrow,
    "scrolled, and a column hidden": scrolled,
    "sorted": lambda twin: twin.sortByColumn(1, Qt.SortOrder.DescendingOrder),
    "empty": lambda twin: twin.set_rows([]),
}
"""The states in which users see a table."""


@pytest.mark.parametrize("how", DRESSED)
def test_the_loop_paints_what_a_delegate_paints_cell_by_cell(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    twin = table(qtbot, PaintedByQt)
    qtbot.waitExposed(twin)
    DRESSED[how](twin)
    looped = twin.viewport().grab().toImage()
    twin.setItemDelegate(Cell(twin))
    monkeypatch.setattr(PaintedByQt, "on", True)
    assert looped == twin.viewport().grab().toImage()


def test_progress_is_a_text_and_a_bar_of_its_share_that_sorts_by_it(qtbot: QtBot) -> None:
    twin = TableTwin([Column("updates", "updates", chars=16, kind="progress")])
    qtbot.addWidget(twin)
    twin.set_rows([(Numbered("9 / 60", 9 / 60),), (Numbered("60 / 60", 1.0),), (Numbered("0 / 60", 0.0),)])
    twin.resize(400, 200)
    twin.show()
    assert [word.text for word in painted_words(twin)][:3] == ["9 / 60", "60 / 60", "0 / 60"]
    image, accent = twin.viewport().grab().toImage(), LIGHT.colour("accent").rgb()
    lengths = []
    for row in range(3):
        middle = twin.visualRect(twin.table.index(row, 0)).center().y()
        lengths.append(sum(image.pixel(x, middle) == accent for x in range(image.width())))
    assert lengths[2] == 0 and lengths[0] == pytest.approx(lengths[1] * 9 / 60, abs=3)
    twin.sortByColumn(0, Qt.SortOrder.AscendingOrder)
    assert [twin.table.row_at(place) for place in range(3)] == [2, 0, 1]


def test_a_push_that_is_too_long_for_its_column_is_brief_and_no_digit_is_cut(qtbot: QtBot) -> None:
    twin = TableTwin([Column("gradient", "push", chars=8.5, kind="push")])
    qtbot.addWidget(twin)
    twin.set_rows([(-1.54e-4,), (0.25,)])
    twin.resize(200, 120)
    twin.show()
    words = [word.text for word in painted_words(twin)]
    assert "▼ −2e−4" in words and "▲ 0.250" in words
    assert twin.table.tsv([0]).endswith("-0.000154\n"), "a copy holds every digit"
