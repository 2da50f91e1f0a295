"""Columns of the step table: order, widths, titles, sums, and the stage that reveals each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from app.plotting.numbers import residues, shown
from app.plotting.table_model import Column
from app.token_grid.cells import visible_text
from app.workspace.cursor import Selection, Stage
from grpo_core import step_table
from grpo_core.explain import Numbers, Quantity
from grpo_core.record import Origin, Step
from grpo_core.text import tr


class Look(NamedTuple):
    """The look of a column in a table.

    Attributes:
        rank: its priority. A narrow panel hides the columns of the highest ranks; copies and exports contain all of
            them.
        stage: the stage that reveals it. It is blank before that stage.
        chars: its width, as a multiple of a digit's width.
        of_tokens: its width if rows are tokens; None for the same. A reward with several parts has a sign, and a push
            can be small enough to need an exponent.
        short: its title in the window; empty for the usual one.
        kind: see :class:`~app.plotting.table_model.Column`; empty for that of words or numbers.
        summed: whether its sum is shown below the table.
    """

    rank: int
    stage: Stage = Stage.UPDATE
    chars: float = 7.5
    of_tokens: float | None = None
    short: str = ""
    kind: str = ""
    summed: bool = False


LOOKS = {
    "sample": Look(0, Stage.SAMPLE),
    "prompt": Look(9, Stage.SAMPLE, 9),
    "action": Look(1, Stage.SAMPLE, short="a"),
    "completion": Look(8, Stage.SAMPLE, 18, kind="mono"),
    "place": Look(10, Stage.SAMPLE, 3),
    "token": Look(2, Stage.SAMPLE, kind="mono"),
    "reward": Look(5, Stage.SCORE, 5.2, 6.2, short="R", summed=True),
    "advantage": Look(3, Stage.NORMALIZE, 8.5, short="A", kind="push", summed=True),
    "ratio": Look(6, chars=5.2, short="r"),
    "clipped": Look(7, chars=3, short=tr("clip", "mark"), kind="chip"),
    "gradient": Look(4, Stage.UPDATE, 8.5, 10.5, short=tr("push"), kind="push", summed=True),
    "surrogate": Look(12),
    "kl": Look(11),
    "weight": Look(14, summed=True),
    "token_loss": Look(13, short=tr("loss")),
}
"""The columns from left to right, by name."""
MARGIN = 0.75
"""Extra width of a column of short labels, as a multiple of a digit's width."""


def columns_shown(step: Step, origin: Origin) -> list[step_table.Column]:
    """Return the columns from left to right. The prompt column is left out if the run has only one prompt."""
    columns = [c for c in step_table.columns(step) if not (c.name == "prompt" and len(origin.prompts) == 1)]
    return sorted(columns, key=lambda c: [*LOOKS].index(c.name))


def table_column(column: step_table.Column, step: Step, origin: Origin) -> Column:
    """Return the table widget's version of a column, with its width. It is the same for every update of a run."""
    look = LOOKS[column.name]
    return Column(
        column.name,
        look.short or column.title,
        chars=_chars(column, step, origin),
        decimals=3,
        kind=look.kind or ("number" if column.decimals is not None else "text"),
        help=tr("−∂L/∂log π: up makes the token likelier.")
        if column.name == "gradient"
        else f"{column.title}. {column.help}",
        meaning="reward" if column.name == "reward" else "",
    )


def _chars(column: step_table.Column, step: Step, origin: Origin) -> float:
    if column.name == "sample":
        return len(str(len(step.mask))) + MARGIN
    if column.name == "action":
        return max((len(name) for name in origin.vocabulary), default=1) + MARGIN
    look = LOOKS[column.name]
    return look.of_tokens if look.of_tokens is not None and step.mask.shape[1] > 1 else look.chars


def values_shown(column: step_table.Column, values: Sequence[Any], stage: Stage) -> Sequence[object]:
    """Return a column's values as shown in the table, blank if only a stage after ``stage`` reveals them."""
    if stage < LOOKS[column.name].stage:
        return [None] * len(values)
    if column.name == "gradient":
        # the step is opposite to the gradient, so the sign is flipped: a push up is positive
        return residues([None if value is None else -value for value in values])
    if column.name == "advantage":
        return residues(values)
    if column.name == "clipped":
        return [LOOKS["clipped"].short if value else "" for value in values]
    if column.name == "token":
        return [visible_text(str(value)) for value in values]
    return values


def place_of(selection: Selection, rows: Sequence[step_table.Row]) -> int | None:
    """Return the row of the selected token, or the first of the selected completion, or None if there is none."""
    here = [n for n, row in enumerate(rows) if row.row == selection.row]
    exact = [n for n in here if rows[n].token == selection.token]
    return next(iter(exact or here), None)


def summed(name: str, passed: int, only: int | None) -> Quantity:
    """Return the sum of a column, over all completions or over the tokens of one."""
    return Quantity(f"{name}_sum", passed=passed, row=only)


def sums(numbers: Numbers, passed: int, stage: Stage, only: int | None) -> dict[str, float]:
    """Return the sums of the columns that are summed and that ``stage`` reveals, by name.

    Numbers that belong to an entire completion are summed over completions, others over tokens, or over those of
    completion ``only``.
    """
    wanted = [name for name, look in LOOKS.items() if look.summed and look.stage <= stage]
    totals = {name: numbers[summed(name, passed, only)] for name in wanted}
    # the step is opposite to the gradient; a sum of 0 keeps its sign
    return {name: -value if name == "gradient" and value else value for name, value in totals.items()}


def widest_sums(texts: Mapping[str, str], completions: int) -> dict[str, str]:
    """Return the widest strings for which to reserve space in the summed columns.

    They are the sums (``texts``), and a reward of 1 for every completion, so that widths stay the same from update to
    update.
    """
    usual = shown(float(completions))
    return {**texts, "reward": max(texts.get("reward", ""), usual, key=len)}
