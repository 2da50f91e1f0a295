"""The tables of a what-if: the numbers of both sides, and the samples with their numbers, one row per token."""

from __future__ import annotations

from app.panels.step_columns import LOOKS, place_of
from app.panels.what_if.question import WhatIfPicture
from app.plotting.numbers import Missing, as_rounded
from app.plotting.table_model import Column
from app.plotting.table_twin import TableTwin
from app.workspace.cursor import Selection
from grpo_core import step_table
from grpo_core.config.value_names import worded
from grpo_core.record import Origin
from grpo_core.text import tr

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
    # a value that cannot affect a batch that is already sampled is in parentheses
    rows: list[list[object]] = [
        [d.title, worded(d.ran), worded(d.wanted) if d.replayed else f"({worded(d.wanted)})"] for d in w.differences
    ]
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


WORDS = {"sample": 2.0, "prompt": 9.0, "action": 2.0, "completion": 14.0, "place": 2.5, "token": 3.0}
PAIRS = {"advantage": 8.0, "ratio": 5.5, "clipped": 4.0, "weight": 6.5, "token_loss": 6.5, "gradient": 8.5}
"""Numbers shown for both sides, with the widths of their columns."""
IF = tr("{} if")
"""Heading of the what-if's column."""


class SampleTable(TableTwin):
    """The table of samples. Its rows are those of the record, in sampling order."""

    def __init__(self) -> None:
        super().__init__(title=tr("Samples, as it ran and what if"))
        self._rows: list[step_table.Row] = []

    def show_picture(self, picture: WhatIfPicture, origin: Origin, selection: Selection) -> None:
        known = step_table.columns(picture.step)
        words = [(i, c) for i, c in enumerate(known) if c.name in WORDS]
        if len(origin.prompts) == 1:
            words = [(i, c) for i, c in words if c.name != "prompt"]
        paid = next(i for i, c in enumerate(known) if c.name == "reward")
        pairs = [(i, c) for i, c in enumerate(known) if c.name in PAIRS]
        sides = picture.what_if.passes(picture.passed)
        ran, other = (step_table.rows(side, nearest, origin=origin) for side, nearest in sides)
        self._rows = ran
        self.set_columns(_columns([c for _, c in words], [c for _, c in pairs]))
        self.set_rows(
            [
                [here.cells[i] for i, _ in words]
                + [here.cells[paid]]
                + [_cell(c.name, cells[i]) for i, c in pairs for cells in (here.cells, there.cells)]
                for here, there in zip(ran, other, strict=True)
            ]
        )
        self.select_row(place_of(selection, ran))

    def place(self, n: int) -> tuple[int, int]:
        return self._rows[n].row, self._rows[n].token


def _columns(words: list[step_table.Column], pairs: list[step_table.Column]) -> list[Column]:
    columns = [
        Column(
            c.name,
            c.title if c.name not in ("action", "sample") else (c.symbol or c.title),
            chars=WORDS[c.name],
            kind="mono" if c.name in ("completion", "token") else "text",
            help=c.help,
        )
        for c in words
    ]
    columns.append(Column("reward", "R", chars=5.5, help=tr("What the sample was paid."), meaning="reward"))
    for c in pairs:
        look, chars = LOOKS[c.name], PAIRS[c.name]
        title, kind = look.short or c.symbol, look.kind or "number"
        help = tr("−∂L/∂log π: up makes the token likelier.") if c.name == "gradient" else f"{c.title}. {c.help}"
        columns.append(Column(c.name, title, chars=chars, kind=kind, help=tr("As it ran. {help}").format(help=help)))
        columns.append(
            Column(
                f"{c.name}_if", IF.format(title), chars=chars, kind=kind, help=tr("What if. {help}").format(help=help)
            )
        )
    return columns


def _cell(name: str, value: object) -> object:
    if name == "gradient" and isinstance(value, float):
        return -value  # the step is opposite to the gradient, so the sign is flipped: a push up is positive
    return (LOOKS["clipped"].short if value else "") if name == "clipped" else value
