"""Step detail: one row a sample of the update shown, every number of it, in the pass shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from PySide6.QtCore import QSignalBlocker, Qt, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QStackedLayout, QVBoxLayout, QWidget

from app.panels.base import Panel
from app.panels.calm import CalmBox
from app.panels.sum_row import SumRow
from app.plotting.numbers import shown
from app.plotting.table_model import Column
from app.plotting.table_twin import TableTwin
from app.theme.labels import Label, plain_tip
from app.workspace.cursor import Stage
from app.workspace.step_view import StepView
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core import step_table
from grpo_core.explain import Quantity
from grpo_core.record import Step
from grpo_core.text import tr

KINDS = {"advantage": "push", "gradient": "push", "clipped": "chip", "completion": "mono", "token": "mono"}
WIDTHS = {
    "prompt": 9, "completion": 18, "place": 3, "reward": 5.2, "advantage": 8.5, "ratio": 5.2, "clipped": 3,
    "gradient": 8.5,
}  # fmt: skip
"""Digits for which a column has room."""
OF_TOKENS = {"reward": 6.2, "gradient": 10.5}
"""Other widths where rows are tokens: a reward of several parts has a sign, a push may be so small that it has an
exponent."""
MARGIN = 0.75
"""Digits that a column of short texts takes beside its longest."""
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
"""Columns from the left; what is not named here follows."""
KEPT = (
    "sample", "action", "token", "advantage", "gradient", "reward", "ratio", "clipped", "completion", "prompt", "place",
    "kl", "surrogate", "token_loss", "weight",
)  # fmt: skip
"""Columns in the order in which they get room: in a narrow panel the last ones wait for a wider one. Copies and exports
hold them all."""
SUMMED = ("reward", "advantage", "gradient", "weight")
"""Columns whose sums stand below the table."""
MOST_ROWS = 4_000
"""Tokens of an update that are listed together; making more rows would hold the window up."""
ROUNDING = 1e-9
"""A sum below this share of what was added is written as 0: what is left of it is rounding."""
SHORT = {
    "reward": "R",
    "advantage": "A",
    "ratio": "r",
    "gradient": tr("push"),
    "token_loss": tr("loss"),
    "clipped": tr("clip"),
    "action": "a",
}
UNTIL: dict[Stage, tuple[str, ...]] = {
    Stage.SAMPLE: (),
    Stage.SCORE: ("reward",),
    Stage.NORMALIZE: ("reward", "advantage"),
}
"""Columns that a stage has revealed; what comes later is blank until then."""


NONE_YET = tr("One row a sample appears here with every number of the update. Press Step to compute one.")


class StepDetailPanel(Panel):
    """A table that follows the cursor; a cell explains itself on Return, E or a double click."""

    calm, plans = True, False

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self._columns: tuple[step_table.Column, ...] = ()
        self._places: list[int] = []
        self._rows: list[step_table.Row] = []
        self._only: int | None = None
        self._filled: tuple[object, ...] = ()
        self.passes = CalmBox()
        self.passes.setAccessibleName(tr("Pass"))
        self.passes.activated.connect(self._on_pass)
        self.table = TableTwin(title=tr("Step detail"))
        self.table.selected.connect(self._on_selected)
        self.table.activated_cell.connect(self._on_cell)
        self.sums = SumRow(self.table)
        self.wider = Label()
        self.wider.setObjectName("muted")
        self.foot = Label()
        self.foot.setObjectName("muted")
        self.foot.setWordWrap(True)
        self.empty = Label(NONE_YET)
        self.empty.setObjectName("muted")
        self.empty.setWordWrap(True)
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.empty.setMargin(16)
        top = QHBoxLayout()
        top.setContentsMargins(12, 4, 12, 4)
        top.setSpacing(6)
        label = Label(tr("Pass"))
        label.setObjectName("muted")
        label.setBuddy(self.passes)  # goes with the box where a picture has no boxes
        top.addWidget(label)
        top.addWidget(self.passes)
        top.addStretch(1)
        top.addWidget(self.wider)
        full = QWidget()
        column = QVBoxLayout(full)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(top)
        column.addWidget(self.table, 1)
        column.addWidget(self.sums)
        foot = QHBoxLayout()
        foot.setContentsMargins(12, 4, 12, 8)
        foot.addWidget(self.foot)
        column.addLayout(foot)
        column.addStretch(0)
        self._stack = QStackedLayout(self)
        self._stack.addWidget(full)
        self._stack.addWidget(self.empty)

    # -- drawing -----------------------------------------------------------------------------------------------------

    def draw(self, view: View) -> None:
        step = view.step.step
        self._stack.setCurrentIndex(0 if step is not None else 1)
        if step is None:
            self.empty.setText(view.run.why_no_step or NONE_YET)
            return
        self._fill_passes(view, step)
        revealed, only = UNTIL.get(view.cursor.stage), _only(view, step)
        key = (view.step, only, revealed, view.theme, view.scale)
        if key != self._filled:  # another token of the same completions needs no other table
            self._filled, self._only = key, only
            self._fill(view, step, revealed)
        self.table.select_row(self._place_of(view))
        foot = _foot(revealed, view)
        if self._only is not None:
            foot = tr(
                "The tokens of completion {row} alone; choose another one in the panel “Completions”. {foot}"
            ).format(row=self._only + 1, foot=foot)
        self.foot.setText(foot)
        self.table.set_summary(self.summary(view))

    def _fill(self, view: View, step: Step, revealed: tuple[str, ...] | None) -> None:
        """The tokens of the update, or of the completion that is chosen, with as much as the stage reveals."""
        columns = [
            c for c in step_table.columns(step) if not (c.name == "prompt" and len(view.run.origin.prompts) == 1)
        ]
        columns.sort(key=lambda c: FIRST.index(c.name) if c.name in FIRST else len(FIRST))
        places = self._places = [step_table.columns(step).index(c) for c in columns]
        self._columns = tuple(columns)
        self._rows = step_table.rows(
            step, view.step.passed, origin=view.run.origin, only=self._only, evaluated=view.step.numbers
        )
        self.table.set_look(view.theme, view.scale)
        self.table.set_columns([_column(c, _longest(c, step, view)) for c in columns])
        cells = zip(*(row.cells for row in self._rows), strict=True)
        values = list(cells) or [()] * len(step_table.columns(step))
        shown_values = [_shown(c, values[i], revealed) for i, c in zip(places, columns, strict=True)]
        self.table.set_rows(list(zip(*shown_values, strict=True)))
        self.table.end_with_rows()
        self._fit_columns()
        self.sums.show_sums(self._sums(revealed))

    def _fit_columns(self) -> None:
        """Show as many columns as have room, in the order of :data:`KEPT`, so that nothing is scrolled sideways."""
        order = sorted(range(len(self._columns)), key=lambda n: KEPT.index(self._columns[n].name))
        bar = self.table.verticalScrollBar().sizeHint().width()  # its room is kept: no column comes and goes with it
        hidden = self.table.fit_columns(order, self.table.width() - 2 * self.table.frameWidth() - bar)
        names = [self._columns[n].title for n in hidden]
        self.wider.setText(tr("+ {count} columns").format(count=len(names)) if names else "")
        self.wider.setToolTip(
            plain_tip(tr("In a wider panel: {names}.").format(names=", ".join(names)) if names else "")
        )
        self.sums.update()

    def _sums(self, revealed: tuple[str, ...] | None) -> dict[str, float]:
        """Sums by column: of completions where a number belongs to the whole completion, else of tokens."""
        sums = {}
        # the first token of each completion, and to which of them each token belongs
        _, first, of = np.unique([row.row for row in self._rows], return_index=True, return_inverse=True)
        for n, column in enumerate(self._columns):
            if column.name not in SUMMED or (revealed is not None and column.name not in revealed):
                continue
            values = np.array([row.cells[self._places[n]] for row in self._rows], dtype=float)  # None is NaN
            if column.name == "reward" or (
                column.name == "advantage" and np.array_equal(values, values[first][of], equal_nan=True)
            ):
                values = values[first]
            values = values[np.isfinite(values)]
            total = float(values.sum())
            if abs(total) <= ROUNDING * float(np.abs(values).sum()):
                total = 0.0
            sums[column.name] = -total if column.name == "gradient" and total else total
        return sums

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_columns()

    def _fill_passes(self, view: View, step: Step) -> None:
        with QSignalBlocker(self.passes):
            if self.passes.count() != step.passes:
                self.passes.clear()
                self.passes.addItems([f"{n + 1} of {step.passes}" for n in range(step.passes)])
            self.passes.setCurrentIndex(view.step.passed)

    def _place_of(self, view: View) -> int | None:
        """The table's row of the selected completion and token."""
        wanted = view.selection
        if wanted.row is None:
            return None
        here = [i for i, row in enumerate(self._rows) if row.row == wanted.row]
        exact = [i for i in here if self._rows[i].token == wanted.token]
        return next(iter(exact or here), None)

    def summary(self, view: View) -> str:
        if view.step.step is None:
            return view.run.why_no_step or tr("No update yet.")
        place = [column.name for column in step_table.columns(view.step.step)].index("clipped")
        clipped = sum(1 for row in self._rows if row.cells[place])
        return tr("Update {step}, pass {passed}: {count} tokens, {clipped} clipped.").format(
            step=view.run.label(view.cursor.step), passed=view.step.passed + 1, count=len(self._rows), clipped=clipped
        )

    # -- input -------------------------------------------------------------------------------------------------------

    @Slot(int)
    def _on_pass(self, index: int) -> None:
        self.workspace.show_stage(Stage.UPDATE, index)

    @Slot(int)
    def _on_selected(self, place: int) -> None:
        step = self.workspace.view.step.step
        if step is not None and 0 <= place < len(self._rows):
            row = self._rows[place]
            self.workspace.select(row=row.row, token=row.token, action=int(step.tokens[row.row, row.token]))

    @Slot(int, str)
    def _on_cell(self, place: int, key: str) -> None:
        column = next((c for c in self._columns if c.name == key), None)
        if column is None or not 0 <= place < len(self._rows):
            return
        row, passed = self._rows[place], self.workspace.view.step.passed
        quantity = step_table.address(row, column, passed)
        self.workspace.explain(quantity or Quantity("gradient", passed=passed, row=row.row, token=row.token))


def _only(view: View, step: Step) -> int | None:
    """Of an update with too many tokens for one table, the completion that is chosen, else the first; None for all."""
    if int(step.mask.sum()) <= MOST_ROWS:
        return None
    row = view.selection.row
    return row if row is not None and row < len(step.mask) else 0


def _longest(column: step_table.Column, step: Step, view: View) -> float:
    """Digits for which a column has room; the same for every update of a run."""
    if column.name == "sample":
        return len(str(len(step.mask))) + MARGIN
    if column.name == "action":
        return max((len(name) for name in view.run.origin.vocabulary), default=1) + MARGIN
    widths = {**WIDTHS, **OF_TOKENS} if step.mask.shape[1] > 1 else WIDTHS
    return widths.get(column.name, 7.5)


def _column(column: step_table.Column, chars: float) -> Column:
    kind = KINDS.get(column.name, "number" if column.decimals is not None else "text")
    return Column(
        column.name,
        SHORT.get(column.name, column.title),
        chars=chars,
        decimals=3,
        kind=kind,
        help=tr("−∂L/∂log π: up makes the token likelier.")
        if column.name == "gradient"
        else f"{column.title}. {column.help}",
        meaning="reward" if column.name == "reward" else "",
    )


def _shown(column: step_table.Column, values: Sequence[Any], revealed: tuple[str, ...] | None) -> Sequence[object]:
    """A column's values as they stand in the table; what a later stage reveals is not there yet."""
    computed = column.decimals is not None or column.name == "clipped"
    if computed and revealed is not None and column.name not in revealed:
        return [None] * len(values)
    if column.name == "gradient":
        # the step goes against the gradient: what is pushed up points up
        return [None if value is None else -value for value in values]
    if column.name == "clipped":
        word = tr("clip")
        return [word if value else "" for value in values]
    return values


def _groups(view: StepView) -> list[step_table.GroupRow]:
    """The groups of the update shown."""
    assert view.step is not None
    return step_table.groups(view.step, origin=view.origin)


def _foot(revealed: tuple[str, ...] | None, view: View) -> str:
    """Mean and standard deviation of each group's rewards, once they are known."""
    if revealed is not None and "reward" not in revealed:
        return tr("Rewards come with the next stage.")
    parts = []
    groups = view.step.derived(_groups)
    for group in groups[:4]:
        if len(groups) > 1:
            pattern = (
                tr("{prompt}: mean R {mean} · std R {std} · no signal")
                if group.silent
                else tr("{prompt}: mean R {mean} · std R {std}")
            )
        else:
            pattern = (
                tr("mean R {mean} · std R {std} · no signal") if group.silent else tr("mean R {mean} · std R {std}")
            )
        parts.append(pattern.format(prompt=group.prompt, mean=shown(group.mean), std=shown(group.std)))
    if len(groups) > 4:
        parts.append(tr("and {count} more groups").format(count=len(groups) - 4))
    return "   ".join(parts)
