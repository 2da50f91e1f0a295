"""The "This step" panel: groups without a signal, and the leading tokens of the push, the KL or the loss."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QStackedLayout, QToolButton, QWidget

from app.boxes import across, down
from app.plotting.table_twin import TableTwin
from app.theme.labels import EmptyLabel, Paragraph, plain_tip
from app.trainers.panels.step_summary.rows import GROUPS, TOKENS, Summary, TokenSummary, summary_of, tokens_of
from app.widgets.calm import CalmBox
from app.widgets.panel import Panel
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.errors import GrpoError, RunFileError
from grpo_core.leading import CONTRIBUTIONS
from grpo_core.text import tr

NONE_YET = tr("The groups of an update and its leading tokens appear here. Press Step to compute one.")
NONE_RECORDED = tr("No completions are recorded at this step.")
KEPT_GROUPS, KEPT_TOKENS = (0, 1, 2, 3), (0, 1, 2, 3, 4)
"""Columns of each table by priority, for panels too narrow to show them all."""
OF_GROUPS = 0.36
"""Maximum share of the height for the groups."""


class StepSummaryPanel(Panel):
    """A table of groups above a table of tokens. A row links to its completion or token.

    Signals:
        completion_wanted: show the selected completion as text.
        token_wanted: show the selected token.
        what_if_wanted: show the update under another loss.
    """

    completion_wanted = Signal()
    token_wanted = Signal()
    what_if_wanted = Signal()
    plans = False

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self._key: tuple[object, ...] = ()
        self._summary: Summary | None = None
        self._tokens: TokenSummary | None = None
        self._unreadable = ""
        self.groups_sentence, self.tokens_sentence = Paragraph(), Paragraph()
        self.groups = TableTwin(GROUPS, tr("Groups; Return shows the first completion"))
        self.groups.selected.connect(self._on_group)
        self.groups.activated_cell.connect(self._on_group)
        self.tokens = TableTwin(TOKENS, tr("Tokens that contribute most; Return shows the token"))
        self.tokens.selected.connect(self._on_token)
        self.tokens.activated_cell.connect(self._on_token)
        for table in (self.groups, self.tokens):
            table.horizontalHeader().setStretchLastSection(True)
        self.by = CalmBox()
        self.by.setAccessibleName(tr("What the tokens contribute to"))
        for name, one in CONTRIBUTIONS.items():
            self.by.addItem(tr("Tokens by {what}").format(what=one.title), name)
        self.by.activated.connect(self.redraw)
        self.other = QToolButton()
        self.other.setText(tr("Another loss"))
        self.other.setToolTip(plain_tip(tr("Ask “What if”: the same batch under another loss.")))
        self.other.clicked.connect(self.what_if_wanted)
        self.empty = EmptyLabel(NONE_YET, margin=16)
        self._stack = QStackedLayout(self)
        self._stack.addWidget(self._build())
        self._stack.addWidget(self.empty)

    def _build(self) -> QWidget:
        choices = across(self.by, None, self.other, margins=(12, 4, 12, 0))
        whole = QWidget()
        down(
            self.groups_sentence,
            self.groups,
            choices,
            self.tokens_sentence,
            (self.tokens, 1000),
            None,
            on=whole,
            margins=(0, 6, 0, 0),
            spacing=4,
        )
        return whole

    # -- drawing -----------------------------------------------------------------------------------------------------

    def draw(self, view: View) -> None:
        key = (view.run.id, view.cursor.step, view.step.record, view.step.passed, self.by.currentData())
        if key != self._key:
            self._key = key
            self._read(view)
        self._stack.setCurrentIndex(0 if self._summary is not None else 1)
        self.empty.setText(self._unreadable or (NONE_RECORDED if view.run.is_recorded else NONE_YET))
        if self._summary is None:
            return
        for table in (self.groups, self.tokens):
            table.set_look(view.theme, view.scale)
        self.groups_sentence.setText(self._summary.groups_sentence)
        self.groups.set_rows(self._summary.group_rows)
        self.groups.set_summary(self._summary.groups_sentence)
        self.tokens.set_rows([] if self._tokens is None else self._tokens.rows)
        self.tokens.setVisible(self._tokens is not None and bool(self._tokens.rows))
        said = self._unreadable if self._tokens is None else self._tokens.sentence
        self.tokens_sentence.setText(" ".join(filter(None, (said, view.step.assumption))))
        self.tokens.set_summary(self.tokens_sentence.text())
        self._mark(view)
        self._fit()

    @np.errstate(all="ignore")  # a value that is not finite is a finding
    def _read(self, view: View) -> None:
        self._tokens, self._unreadable = None, ""
        try:
            self._summary = summary_of(view)
        except RunFileError as error:
            self._summary, self._unreadable = None, str(error)
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
        groups = () if self._summary is None else self._summary.groups
        self.groups.select_row(next((n for n, one in enumerate(groups) if row is not None and row in one.rows), None))
        found = None if self._tokens is None else self._tokens.found
        places = [] if found is None else [*zip(found.rows.tolist(), found.tokens.tolist(), strict=True)]
        self.tokens.select_row(places.index((row, token)) if (row, token) in places else None)

    def _fit(self) -> None:
        for table, columns in ((self.groups, KEPT_GROUPS), (self.tokens, KEPT_TOKENS)):
            table.end_with_rows()
            table.fit_columns(columns)
        self.groups.setMaximumHeight(min(self.groups.maximumHeight(), round(self.height() * OF_GROUPS)))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def summary(self, view: View) -> str:
        if self._summary is None:
            return self.empty.text()
        return f"{self._summary.groups_sentence} {self.tokens_sentence.text()}".strip()

    # -- input -------------------------------------------------------------------------------------------------------

    @Slot(int)
    @Slot(int, str)
    def _on_group(self, place: int, key: str = "") -> None:
        if self._summary is not None and 0 <= place < len(self._summary.groups):
            self.workspace.select_token(int(self._summary.groups[place].rows[0]), 0)
            self.completion_wanted.emit()

    @Slot(int)
    @Slot(int, str)
    def _on_token(self, place: int, key: str = "") -> None:
        if self._tokens is not None and 0 <= place < len(self._tokens.rows):
            found = self._tokens.found
            self.workspace.select_token(int(found.rows[place]), int(found.tokens[place]))
            self.token_wanted.emit()
