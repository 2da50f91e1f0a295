"""The "This step" panel: groups without a signal, and the leading tokens of the push, the KL or the loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from PySide6.QtCore import Slot
from PySide6.QtWidgets import QWidget

from app.boxes import across, down, stacked
from app.plotting.numbers import shown
from app.plotting.table_model import Column
from app.plotting.table_twin import TableTwin
from app.theme.labels import EmptyLabel, Paragraph
from app.trainers.recorded_run import RecordedRun
from app.widgets.calm import CalmBox, tool_button
from app.widgets.panel import Panel
from app.workspace.step_view import StepView
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core import recompute
from grpo_core.errors import GrpoError, RunFileError
from grpo_core.leading import CONTRIBUTIONS, Group, Leading, groups_of, leading, of_groups, of_leading
from grpo_core.text import tr
from grpo_core.texts import question_text

T = TypeVar("T")
PREVIEW = 80
"""Maximum number of characters of a prompt shown in the table."""

GROUPS = (
    Column("group", "#", chars=3, decimals=0, help=tr("Number of the prompt.")),
    Column("signal", tr("Signal"), chars=5.5, kind="chip", help=tr("“none”: every advantage of the group is 0.")),
    Column("rewards", tr("Rewards"), chars=14, kind="text", help=tr("The lowest and the highest reward.")),
    Column("prompt", tr("Prompt"), chars=8, kind="text", help=tr("How the prompt begins.")),
)
TOKENS = (
    Column("row", "#", chars=4, decimals=0, help=tr("Number of the completion.")),
    Column("token", tr("Token"), chars=5, decimals=0, help=tr("Place of the token within it.")),
    Column("value", tr("Adds"), chars=11, kind="push", decimals=4, help=tr("What it adds, including its weight.")),
    Column("share", tr("Share"), chars=6, kind="text",
           help=tr("Its share of the sum of what all tokens add, ignoring signs.")),
    Column("text", tr("Text"), chars=8, kind="mono", help=tr("What the token says.")),
)  # fmt: skip # table, one row per line


@dataclass(frozen=True, kw_only=True, eq=False)
class Listed(Generic[T]):
    """The content of a table, as it was found and as rows with its columns, and the sentence above it."""

    found: T
    sentence: str
    rows: list[list[object]]


def summary_of(view: View) -> Listed[list[Group]] | None:
    """Return the groups of the update shown, those without a signal first, or None if no groups are recorded.

    Raises:
        RunFileError: a recorded run cannot be read.
    """
    step = view.step.step
    table = view.run.table(view.cursor.step) if step is None and isinstance(view.run, RecordedRun) else None
    if step is not None:
        advantage = view.step.advantage
        assert advantage is not None
        pushed = (step.mask & (advantage if advantage.ndim > 1 else advantage[:, None]).astype(bool)).any(axis=-1)
        prompts = {group: question_text(step, group, view.run.origin) for group in np.unique(step.group).tolist()}
        groups = groups_of(step.group, step.rewards, pushed)
    elif table is not None:
        gained = None if table.advantage is None else np.nan_to_num(table.advantage).astype(bool)
        prompts = {int(group): text or "" for group, text in zip(table.group, table.prompts, strict=True)}
        groups = groups_of(table.group, table.rewards, gained)
    else:
        return None
    rows: list[list[object]] = [
        [
            one.number + 1,
            tr("none", "signal") if one.silent else "",
            _ends(one),
            " ".join(prompts[one.number].split())[:PREVIEW],
        ]
        for one in groups
    ]
    return Listed(found=groups, sentence=of_groups(groups).words(), rows=rows)


def _ends(group: Group) -> str:
    if np.isnan(group.low):
        return tr("not scored")
    if group.low == group.high:
        return tr("all {reward}").format(reward=_short(group.low))
    return tr("{low} to {high}").format(low=_short(group.low), high=_short(group.high))


def _short(reward: float) -> str:
    return shown(reward, 0 if reward.is_integer() else 3)


def tokens_of(view: StepView, name: str) -> Listed[Leading] | None:
    """Return the tokens of the pass shown that contribute most to ``name``, or None if the record lacks it.

    ``name`` is a key of :data:`~grpo_core.leading.CONTRIBUTIONS`.
    """
    step, terms, gradient = view.step, view.terms, view.gradient
    if step is None or terms is None or gradient is None:
        return None
    values = CONTRIBUTIONS[name].of(step, terms, gradient)
    if values is None:
        return None
    used = recompute.used(step, view.passed)
    found, words = leading(values, used), view.origin.vocabulary
    rows: list[list[object]] = []
    for row, token, value, share in zip(found.rows, found.tokens, found.values, found.shares, strict=True):
        number = int(step.tokens[row, token])
        text = words[number] if 0 <= number < len(words) else "?"
        rows.append([int(row) + 1, int(token) + 1, float(value), f"{share:.1%}", text])
    return Listed(found=found, sentence=of_leading(name, found).words(), rows=rows)


NONE_YET = tr("The groups of an update and its leading tokens appear here. Press Step to compute one.")
NONE_RECORDED = tr("No completions are recorded at this step.")
KEPT_GROUPS, KEPT_TOKENS = (0, 1, 2, 3), (0, 1, 2, 3, 4)
"""Columns of each table by priority, for panels too narrow to show them all."""
OF_GROUPS = 0.36
"""Maximum share of the height for the groups."""


class StepSummaryPanel(Panel):
    """A table of groups above a table of tokens. A row links to its completion or token."""

    plans = False

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self._key: tuple[object, ...] = ()
        self._groups: Listed[list[Group]] | None = None
        self._tokens: Listed[Leading] | None = None
        self._unreadable = ""
        self.groups_sentence, self.tokens_sentence = Paragraph(), Paragraph()
        self.groups = TableTwin(GROUPS, tr("Groups; Return shows the first completion"), stretched=True)
        self.groups.selected.connect(self._on_group)
        self.groups.activated_cell.connect(self._on_group)
        self.tokens = TableTwin(TOKENS, tr("Tokens that contribute most; Return shows the token"), stretched=True)
        self.tokens.selected.connect(self._on_token)
        self.tokens.activated_cell.connect(self._on_token)
        entries = ((tr("Tokens by {what}").format(what=one.title), name) for name, one in CONTRIBUTIONS.items())
        self.by = CalmBox(tr("What the tokens contribute to"), entries)
        self.by.activated.connect(self.redraw)
        self.other = tool_button(
            tr("Another loss"), tip=tr("Ask “What if”: the same batch under another loss."), quiet=False
        )
        self.empty = EmptyLabel(NONE_YET, margin=16)
        choices = across(self.by, None, self.other, margins=(12, 4, 12, 0))
        parts = (self.groups_sentence, self.groups, choices, self.tokens_sentence, (self.tokens, 1000), None)
        self._stack = stacked(down(*parts, margins=(0, 6, 0, 0), spacing=4), self.empty, on=self)

    # -- drawing -----------------------------------------------------------------------------------------------------

    def draw(self, view: View) -> None:
        key = (view.run.id, view.cursor.step, view.step.record, view.step.passed, self.by.currentData())
        if key != self._key:
            self._key = key
            self._read(view)
        self._stack.setCurrentIndex(0 if self._groups is not None else 1)
        self.empty.setText(self._unreadable or (NONE_RECORDED if view.run.is_recorded else NONE_YET))
        if self._groups is None:
            return
        for table in (self.groups, self.tokens):
            table.set_look(view.theme, view.scale)
        self.groups_sentence.setText(self._groups.sentence)
        self.groups.set_rows(self._groups.rows)
        self.groups.set_summary(self._groups.sentence)
        self.tokens.set_rows([] if self._tokens is None else self._tokens.rows)
        self.tokens.setVisible(self._tokens is not None and bool(self._tokens.rows))
        said = self._unreadable if self._tokens is None else self._tokens.sentence
        self.tokens_sentence.setText(" ".join(filter(None, (said, view.step.assumption))))
        self.tokens.set_summary(self.tokens_sentence.text())
        self._mark(view)
        self.fit()

    @np.errstate(all="ignore")  # a value that is not finite is a finding
    def _read(self, view: View) -> None:
        self._tokens, self._unreadable = None, ""
        try:
            self._groups = summary_of(view)
        except RunFileError as error:
            self._groups, self._unreadable = None, str(error)
            return
        try:
            self._tokens = tokens_of(view.step, str(self.by.currentData()))
            if self._tokens is None:
                missing = CONTRIBUTIONS[str(self.by.currentData())].missing
                self._unreadable = missing if view.step.step is not None else view.run.why_no_step
        except GrpoError as error:  # the source lacks inputs that its own settings require
            self._unreadable = str(error)

    def _mark(self, view: View) -> None:
        row, token = view.selection.row, view.selection.token
        groups = [] if self._groups is None else self._groups.found
        self.groups.select_row(next((n for n, one in enumerate(groups) if row is not None and row in one.rows), None))
        found = None if self._tokens is None else self._tokens.found
        places = [] if found is None else [*zip(found.rows.tolist(), found.tokens.tolist(), strict=True)]
        self.tokens.select_row(places.index((row, token)) if (row, token) in places else None)

    def fit(self) -> None:
        for table, columns in ((self.groups, KEPT_GROUPS), (self.tokens, KEPT_TOKENS)):
            table.end_with_rows()
            table.fit_columns(columns)
        self.groups.setMaximumHeight(min(self.groups.maximumHeight(), round(self.height() * OF_GROUPS)))

    def summary(self, view: View) -> str:
        if self._groups is None:
            return self.empty.text()
        return f"{self._groups.sentence} {self.tokens_sentence.text()}".strip()

    # -- input -------------------------------------------------------------------------------------------------------

    @Slot(int)
    @Slot(int, str)
    def _on_group(self, place: int, key: str = "") -> None:
        if self._groups is not None and 0 <= place < len(self._groups.found):
            self.workspace.select_token(int(self._groups.found[place].rows[0]), 0)
            self.panel_wanted.emit("completions")

    @Slot(int)
    @Slot(int, str)
    def _on_token(self, place: int, key: str = "") -> None:
        if self._tokens is not None and 0 <= place < len(self._tokens.rows):
            found = self._tokens.found
            self.workspace.select_token(int(found.rows[place]), int(found.tokens[place]))
            self.panel_wanted.emit("token_inspector")
