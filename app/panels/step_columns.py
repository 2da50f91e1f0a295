"""Columns of the step table: order, widths, titles, sums, and the stage that reveals each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from app.plotting.numbers import residues, shown
from app.plotting.table_model import Column
from app.token_grid.cells import visible_text
from app.workspace.cursor import Selection, Stage
from grpo_core import step_table
from grpo_core.explain import Numbers, Quantity
from grpo_core.record import Origin, Step
from grpo_core.text import tr

KINDS = {"advantage": "push", "gradient": "push", "clipped": "chip", "completion": "mono", "token": "mono"}
WIDTHS = {
    "prompt": 9,
    "completion": 18,
    "place": 3,
    "reward": 5.2,
    "advantage": 8.5,
    "ratio": 5.2,
    "clipped": 3,
    "gradient": 8.5,
}
"""Column widths, as multiples of a digit's width."""
OF_TOKENS = {"reward": 6.2, "gradient": 10.5}
"""Widths that differ if rows are tokens: a reward with several parts has a sign, and a push can be small enough to
need an exponent.
"""
MARGIN = 0.75
"""Extra width of a column of short labels, as a multiple of a digit's width."""
FIRST = (
    "sample",
    "prompt",
    "action",
    "completion",
    "place",
    "token",
    "reward",
    "advantage",
    "ratio",
    "clipped",
    "gradient",
)
"""Columns shown first, from left to right. Columns not listed here follow."""
KEPT = (
    "sample", "action", "token", "advantage", "gradient", "reward", "ratio", "clipped", "completion", "prompt", "place",
    "kl", "surrogate", "token_loss", "weight",
)  # fmt: skip # table, one row per line
"""Columns by priority. A narrow panel hides the last ones; copies and exports contain all of them."""
SUMMED = ("reward", "advantage", "gradient", "weight")
"""Columns whose sums are shown below the table."""
SHORT = {
    "reward": "R",
    "advantage": "A",
    "ratio": "r",
    "gradient": tr("push"),
    "token_loss": tr("loss"),
    "clipped": tr("clip", "mark"),
    "action": "a",
}
UNTIL: dict[Stage, tuple[str, ...]] = {
    Stage.SAMPLE: (),
    Stage.SCORE: ("reward",),
    Stage.NORMALIZE: ("reward", "advantage"),
}
"""Columns revealed by each stage. They are blank before that stage."""


def columns_shown(step: Step, origin: Origin) -> list[step_table.Column]:
    """Return the columns from left to right. The prompt column is left out if the run has only one prompt."""
    columns = [c for c in step_table.columns(step) if not (c.name == "prompt" and len(origin.prompts) == 1)]
    return sorted(columns, key=lambda c: FIRST.index(c.name) if c.name in FIRST else len(FIRST))


def table_column(column: step_table.Column, step: Step, origin: Origin) -> Column:
    """Return the table widget's version of a column, with its width. It is the same for every update of a run."""
    kind = KINDS.get(column.name, "number" if column.decimals is not None else "text")
    return Column(
        column.name,
        SHORT.get(column.name, column.title),
        chars=_chars(column, step, origin),
        decimals=3,
        kind=kind,
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
    widths = {**WIDTHS, **OF_TOKENS} if step.mask.shape[1] > 1 else WIDTHS
    return widths.get(column.name, 7.5)


def values_shown(
    column: step_table.Column, values: Sequence[Any], revealed: tuple[str, ...] | None
) -> Sequence[object]:
    """Return a column's values as shown in the table, blank if only a later stage reveals them."""
    computed = column.decimals is not None or column.name == "clipped"
    if computed and revealed is not None and column.name not in revealed:
        return [None] * len(values)
    if column.name == "gradient":
        # the step is opposite to the gradient, so the sign is flipped: a push up is positive
        return residues([None if value is None else -value for value in values])
    if column.name == "advantage":
        return residues(values)
    if column.name == "clipped":
        word = tr("clip", "mark")
        return [word if value else "" for value in values]
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


def sums(
    numbers: Numbers,
    passed: int,
    columns: Sequence[step_table.Column],
    revealed: tuple[str, ...] | None,
    only: int | None,
) -> dict[str, float]:
    """Return the sums of those ``columns`` that are in :data:`SUMMED`, by name.

    Numbers that belong to an entire completion are summed over completions, others over tokens.

    Args:
        revealed: names of the columns that the stage reveals; None for all.
        only: the completion whose tokens are summed; None for all.
    """
    wanted = [c.name for c in columns if c.name in SUMMED and (revealed is None or c.name in revealed)]
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
