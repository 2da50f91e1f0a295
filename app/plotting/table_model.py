"""Rows of numbers as a Qt model that provides display, sorting, copying, and text for screen readers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt

from app.plotting.numbers import ABSENT, Residue, brief, hover, is_missing, plain, shown, signed
from app.theme.labels import plain_tip
from app.theme.painting import LEFT, RIGHT
from app.theme.tokens import LIGHT, Theme

Rows: TypeAlias = Sequence[Sequence[object]]
"""Rows of plain values, which can differ in length: a list, or a sequence that creates them on demand."""
Index: TypeAlias = QModelIndex | QPersistentModelIndex
SORT_LIMIT = 100_000
"""Maximum number of rows of a table that can be sorted. Sorting more would take too long."""
WORDS = ("text", "mono", "chip", "line", "progress")


class Marked(str):
    """The text of a cell with its own colour.

    Attributes:
        meaning: its colour, by the theme's name.
        line: style of the plotted line that it names. A column of kind "line" shows a sample of the line before the
            text.
        beside: text that is shown after it without being part of the value.
    """

    meaning: str
    line: Qt.PenStyle | None
    beside: str

    def __new__(cls, text: str, meaning: str, line: Qt.PenStyle | None = None, *, beside: str = "") -> Marked:
        made = super().__new__(cls, text)
        made.meaning, made.line, made.beside = meaning, line, beside
        return made


class Numbered(str):
    """The text of a cell that is sorted by a number, which can be NaN."""

    number: float

    def __new__(cls, text: str, number: float) -> Numbered:
        made = super().__new__(cls, text)
        made.number = number
        return made

    def __float__(self) -> float:
        return self.number


@dataclass(frozen=True)
class Column:
    """A column of a table: its key, its title, and the format of its cells.

    Attributes:
        key: a permanent name, passed by signals.
        title: the header; a single letter if that is usual notation.
        chars: width in digits.
        kind: "number"; "push" (up or down glyph and colour); "signed" (plus or minus sign and colour); "text"; "mono";
            "chip" (a small pill, or nothing if the text is empty); "line" (text after a line sample); "progress" (text
            such as “34 / 60” before a bar whose share is the number of a :class:`Numbered`).
        unit: unit, shown in the tooltip.
        help: one sentence for the tooltip of the header.
        meaning: colour of its text, by the theme's name; empty for the usual colour.
    """

    key: str
    title: str
    chars: float = 7
    decimals: int = 3
    kind: str = "number"
    unit: str = ""
    help: str = ""
    meaning: str = ""


class TableModel(QAbstractTableModel):
    """A Qt model of columns and rows.

    In its methods, ``row`` is an index into the data, and ``place`` is a displayed row, which depends on the sort
    order.
    """

    def __init__(self, columns: Sequence[Column] = (), parent: Any = None) -> None:
        super().__init__(parent)
        self.columns: tuple[Column, ...] = tuple(columns)
        self._rows: Rows = ()
        self._count = 0
        self._order: list[int] | None = None
        self._sorted: tuple[int, Qt.SortOrder] | None = None
        self.theme: Theme = LIGHT
        self.factor = 1.0

    # -- data ---------------------------------------------------------------------------------------------------------

    def set_columns(self, columns: Sequence[Column]) -> None:
        """Replace the columns and remove all rows."""
        if tuple(columns) != self.columns:
            self.beginResetModel()
            self.columns, self._rows, self._count, self._order, self._sorted = tuple(columns), (), 0, None, None
            self.endResetModel()

    def set_rows(self, rows: Rows) -> None:
        """Replace the rows, keeping the sort order."""
        count = len(rows)
        if count > self._count:
            self.beginInsertRows(QModelIndex(), self._count, count - 1)
            self._take(rows)
            self.endInsertRows()
        elif count < self._count:
            self.beginRemoveRows(QModelIndex(), count, self._count - 1)
            self._take(rows)
            self.endRemoveRows()
        else:
            self._take(rows)
        if count and self.columns:
            self.dataChanged.emit(self.index(0, 0), self.index(count - 1, len(self.columns) - 1))

    def _take(self, rows: Rows) -> None:
        self._rows, self._count = rows, len(rows)
        self._order = self._ordered()

    def set_look(self, theme: Theme, factor: float) -> None:
        self.theme, self.factor = theme, factor
        if self._count and self.columns:
            self.dataChanged.emit(self.index(0, 0), self.index(self._count - 1, len(self.columns) - 1))

    def values(self, places: Sequence[int], column: int) -> list[object]:
        """Return the values of a column in the displayed rows ``places``."""
        rows = [self._rows[place] for place in (places if self._order is None else [self._order[n] for n in places])]
        return [row[column] if column < len(row) else None for row in rows]

    def value(self, place: int, column: int) -> object:
        """Return the value of a cell in the displayed row ``place``."""
        return self.values((place,), column)[0]

    def row_at(self, place: int) -> int:
        """Return the index in the data of the displayed row ``place``."""
        return place if self._order is None else self._order[place]

    def place_of(self, row: int) -> int | None:
        """Return the displayed row that shows ``row`` of the data, or None if there is no such row."""
        if not 0 <= row < self._count:
            return None
        return row if self._order is None else self._order.index(row)

    def text(self, place: int, column: int, *, narrow: bool = False) -> str:
        """Return the text of a cell. If ``narrow`` is set, numbers with an exponent are shortened."""
        return cell_text(self.value(place, column), self.columns[column], narrow=narrow)

    def tsv(self, places: Sequence[int]) -> str:
        """Return the displayed rows ``places`` as tab-separated text with a header, at full precision."""
        lines = ["\t".join(column.title for column in self.columns)]
        for place in places:
            row = self._rows[self.row_at(place)]
            lines.append("\t".join(plain(value).replace("\t", " ").replace("\n", " ") for value in row))
        return "\n".join(lines) + "\n"

    # -- Qt -----------------------------------------------------------------------------------------------------------

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else self._count

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.columns)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        place, column = index.row(), index.column()
        what = self.columns[column]
        if role == Qt.ItemDataRole.DisplayRole:
            return self.text(place, column)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return LEFT if what.kind in WORDS else RIGHT
        if role == Qt.ItemDataRole.FontRole and what.kind == "mono":
            return self.theme.font("answer", self.factor)
        if role == Qt.ItemDataRole.ForegroundRole:
            return self.theme.ink(cell_meaning(self.value(place, column), what))
        if role == Qt.ItemDataRole.ToolTipRole:
            exact = hover(self.value(place, column), what.unit)
            return plain_tip("\n".join(text for text in (what.help, exact) if text))
        if role == Qt.ItemDataRole.AccessibleTextRole:
            cell = self.text(place, column)
            return f"{what.title} {hover(self.value(place, column), what.unit) if cell == ABSENT else cell}"
        return None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation is not Qt.Orientation.Horizontal or not 0 <= section < len(self.columns):
            return None
        what = self.columns[section]
        if role == Qt.ItemDataRole.DisplayRole:
            return what.title
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tip(what.help) or None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            # with rows or without, since the header is not repainted when rows come
            return LEFT if what.kind in WORDS else RIGHT
        return None

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Sort the rows by a column, with missing values last. A negative column restores the original order."""
        self._sorted = (column, order) if 0 <= column < len(self.columns) else None
        self.layoutAboutToBeChanged.emit()
        before = self.persistentIndexList()
        rows = [self.row_at(index.row()) for index in before]
        self._order = self._ordered()
        where = {row: place for place, row in enumerate(self._order)} if self._order is not None else None
        after = [
            self.index(row if where is None else where[row], index.column())
            for row, index in zip(rows, before, strict=True)
        ]
        self.changePersistentIndexList(before, after)
        self.layoutChanged.emit()

    def _ordered(self) -> list[int] | None:
        if self._sorted is None or self._count > SORT_LIMIT:
            return None
        column, order = self._sorted
        keys = [_sort_key(row[column] if column < len(row) else None) for row in self._rows]
        there = [i for i, key in enumerate(keys) if key is not None]
        absent = [i for i, key in enumerate(keys) if key is None]
        there.sort(key=lambda i: keys[i] or (0, 0.0, ""), reverse=order is Qt.SortOrder.DescendingOrder)
        return there + absent


def cell_text(value: object, what: Column, *, narrow: bool = False) -> str:
    """Return the text of ``value`` in column ``what``. If ``narrow`` is set, numbers with an exponent are shortened."""
    written = brief if narrow else shown
    if what.kind in WORDS:
        beside = f"  {value.beside}" if isinstance(value, Marked) and value.beside else ""
        return "" if is_missing(value) else f"{value}{beside}"
    if what.kind == "signed":
        return signed(value, what.decimals)
    if what.kind == "push" and isinstance(value, (int, float)) and not is_missing(value):
        glyph = "" if not value or isinstance(value, Residue) else "▲ " if value > 0 else "▼ "
        return glyph + written(value, what.decimals)
    return written(value, what.decimals)


def cell_meaning(value: object, what: Column) -> str:
    """Return the meaning of the text colour of ``value`` in column ``what``, by the theme's name."""
    coloured = what.kind in ("push", "signed")
    if not coloured and type(value) in (int, float) and value == value:
        return what.meaning or "text"
    if is_missing(value) or isinstance(value, Residue):
        return "muted"
    if isinstance(value, Marked):
        return value.meaning
    if coloured and isinstance(value, (int, float)):
        return "push_up" if value > 0 else "push_down" if value < 0 else "muted"
    return what.meaning or "text"


def _sort_key(value: object) -> tuple[int, float, str] | None:
    """Return a sort key that orders numbers before text, or None for a missing value."""
    if is_missing(value):
        return None
    if isinstance(value, (int, float)) or hasattr(value, "__float__"):
        number = float(value)
        return None if math.isnan(number) else (0, number, "")
    return (1, 0.0, str(value).casefold())
