"""The table of a what-if: the settings that differ, then the numbers of both sides."""

from __future__ import annotations

from app.panels.what_if.question import WhatIfPicture
from app.plotting.numbers import Missing, as_rounded
from app.plotting.table_model import Column
from app.plotting.table_twin import TableTwin
from grpo_core.config.value_names import worded
from grpo_core.text import tr
from grpo_core.what_if import Difference

TITLE, VALUE = 19.5, 8.5
"""Column widths, as multiples of a digit's width."""
COLUMNS = (
    Column("title", "", chars=TITLE, kind="text"),
    Column("ran", tr("As it ran"), chars=VALUE, help=tr("The update as it is recorded.")),
    Column("other", tr("What if"), chars=VALUE, help=tr("The same batch under the other settings.")),
)

LATER = Missing(tr("it needs the model"))


def fill(table: TableTwin, picture: WhatIfPicture) -> None:
    table.set_columns(COLUMNS)
    w = picture.what_if
    rows: list[list[object]] = [[d.title, worded(d.ran), _wanted_text(d)] for d in w.differences]
    sides = w.passes(picture.passed)
    for row in picture.rows:
        ran, other = (
            value if value is None else as_rounded(value, side.rounding(row.name, passed))
            for value, (side, passed) in zip((row.ran, row.other), sides, strict=True)
        )
        rows.append([row.title, ran, LATER if other is None else other])
    table.set_rows(rows)


def width_of(table: TableTwin) -> int:
    return sum(table.columnWidth(n) for n in range(len(COLUMNS))) + table.verticalScrollBar().sizeHint().width() + 2


def _wanted_text(difference: Difference) -> str:
    """Return the what-if's value, in parentheses if it cannot affect a batch that is already sampled."""
    text = worded(difference.wanted)
    return text if difference.replayed else f"({text})"
