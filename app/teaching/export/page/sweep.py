"""Results of many runs on a page, with a slider over exactly the values for which runs were computed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.plotting.numbers import full, is_missing, shown
from app.plotting.table_model import Column, Rows
from app.teaching.export.page.markup import Markup, element, table
from app.teaching.lessons.interactives.base import Interactive
from grpo_core.text import tr


@dataclass(frozen=True, kw_only=True)
class SweepTable:
    """A chart's table, with a row for each value for which runs were computed.

    Attributes:
        columns: the values, followed by the results of the runs.
        rows: rows in the chart's order.
    """

    title: str
    columns: Sequence[Column]
    rows: Rows


def sweeps_of(picture: Interactive) -> Iterator[SweepTable]:
    """Yield the tables of many runs in a lesson's picture, without columns that contain no number."""
    for twin in picture.of_many_runs():
        columns, rows = twin.plot.table()
        kept = [n for n in range(len(columns)) if not n or any(not is_missing(row[n]) for row in rows)]
        if len(kept) > 1 and len(rows) > 1:
            yield SweepTable(
                title=twin.plot.title, columns=[columns[n] for n in kept], rows=[[row[n] for n in kept] for row in rows]
            )


def merged(older: SweepTable | None, newer: SweepTable) -> SweepTable:
    """Return two tables of the same chart merged, or the newer one if their runs have different values."""
    if older is None or [row[0] for row in older.rows] != [row[0] for row in newer.rows]:
        return newer
    again = {column.title for column in newer.columns}
    kept = [n for n, column in enumerate(older.columns) if column.title not in again]
    rows = [[*now, *(before[n] for n in kept)] for now, before in zip(newer.rows, older.rows, strict=True)]
    return SweepTable(title=newer.title, columns=[*newer.columns, *(older.columns[n] for n in kept)], rows=rows)


def sweep_section(sweep: SweepTable, place: int) -> Markup:
    """Return a table with a slider over its rows above it. The selected row is marked and described in words."""
    first, *others = sweep.columns
    rows = [
        element(
            "tr",
            element("th", _value(row[0]), scope="row"),
            *(element("td", shown(cell), title=full(cell)) for cell in row[1:]),
            data_said=_said(first, others, row),
        )
        for row in sweep.rows
    ]
    name = f"sweep-{place}"
    slider = element(
        "div",
        element("label", first.title, for_=name),
        element("input", type="range", id=name, min=0, max=len(sweep.rows) - 1, step=1, value=len(sweep.rows) // 2),
        element("output", "", for_=name),
        class_="slider",
    )
    heads = [column.title for column in sweep.columns]
    return element("div", slider, table(sweep.title, heads, rows, scrolls=True), class_="sweep")


def _value(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _said(first: Column, others: Sequence[Column], row: Sequence[object]) -> str:
    """Return a row as a sentence, for the slider and screen readers."""
    numbers = "; ".join(
        tr("{title} {value}").format(title=column.title, value=shown(cell))
        for column, cell in zip(others, row[1:], strict=True)
    )
    return tr("{title} {value}: {numbers}.").format(title=first.title, value=_value(row[0]), numbers=numbers)
