"""Export as CSV of all tables shown in a widget, including those behind its plots."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtWidgets import QWidget

from app.plotting.numbers import plain
from app.plotting.table_model import Column, Rows
from app.plotting.table_twin import TableTwin
from app.plotting.twin_stack import TwinStack
from grpo_core.csv_file import csv_text


def tables(widget: QWidget) -> list[tuple[str, Sequence[Column], Rows]]:
    """Return (title, columns, rows) of every plot and table of ``widget`` that is not hidden.

    The rows of a table are in the displayed order.
    """
    tables: list[tuple[str, Sequence[Column], Rows]] = []
    twins = widget.findChildren(TwinStack)
    for twin in twins:
        if twin.isVisibleTo(widget):
            columns, rows = twin.plot.table()
            tables.append((twin.plot.title, columns, rows))
    for table in widget.findChildren(TableTwin):
        if table.isVisibleTo(widget) and not any(twin.isAncestorOf(table) for twin in twins):
            model = table.table
            shown = [
                [model.value(place, column) for column in range(len(model.columns))]
                for place in range(model.rowCount())
            ]
            tables.append((table.accessibleName(), model.columns, shown))
    return [(title, columns, rows) for title, columns, rows in tables if columns]


def table_csv(columns: Sequence[Column], rows: Rows) -> bytes:
    """Return a table as CSV in UTF-8: column titles, then numbers at full precision. Missing values are empty."""
    heads = [column.title for column in columns]
    return csv_text([heads, *([plain(value) for value in row] for row in rows)], "\n").encode("utf-8")


def targets(path: Path, titles: Sequence[str]) -> list[Path]:
    """Return the paths of the tables: ``path`` for a single table, otherwise a separate path in the same folder for
    each table.
    """
    if len(titles) == 1:
        return [path]
    names: list[str] = []
    for title in titles:
        words = re.sub(r"\W+", "-", title.casefold()).strip("-")[:60] or "table"
        names.append(words if words not in names else f"{words}-{len(names) + 1}")
    return [path.with_name(f"{path.stem}-{name}{path.suffix}") for name in names]
