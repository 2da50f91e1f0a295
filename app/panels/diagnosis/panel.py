"""Diagnosis: what is wrong with a recorded run, where it can be seen, what to change, and whether its loss agrees."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QPlainTextEdit, QPushButton, QSplitter, QVBoxLayout, QWidget

from app.panels.base import Panel
from app.panels.diagnosis.report import EVIDENCE, FINDINGS, KEPT, NEEDED, Entry, entries, status
from app.plotting.table_twin import LARGEST, TableTwin
from app.theme.labels import Label, plain_tip
from app.theme.reasons import allow
from app.workspace.recorded_run import RecordedRun
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.health import CHECKS
from grpo_core.text import tr

WIDE = 1.5
"""Width over height from which the chosen finding stands beside the table of findings, rather than below it."""


class DiagnosisPanel(Panel):
    """A table of findings; the chosen one with its evidence, each a way to the step, completion and token.

    Signals:
        token_wanted: the token that is selected is the evidence; show it.
    """

    token_wanted = Signal()
    plans = False

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self.examination = workspace.examination
        self.examination.changed.connect(self.redraw)
        self._run = ""
        self.entries: list[Entry] = []
        self._chosen = 0
        self._filled: list[int] = []
        self.status = Label()
        self.status.setWordWrap(True)
        self.button = QPushButton()
        self.button.clicked.connect(self._on_button)
        self.button.setToolTip(
            plain_tip(
                tr("Read every update, look for {count} faults, and recompute losses and advantages.").format(
                    count=len(CHECKS)
                )
            )
        )
        self.findings = TableTwin(FINDINGS, tr("Findings"))
        self.findings.horizontalHeader().setStretchLastSection(True)
        self.findings.selected.connect(self._on_finding)
        self.text = QPlainTextEdit()
        self.text.setReadOnly(True)
        self.text.setTabChangesFocus(True)
        self.text.setAccessibleName(tr("The finding in sentences"))
        self.evidence = TableTwin(EVIDENCE, tr("Evidence; Return shows the place"))
        self.evidence.horizontalHeader().setStretchLastSection(True)
        self.evidence.selected.connect(self._on_place)
        self.evidence.activated_cell.connect(self._on_place)
        right = QSplitter(Qt.Orientation.Vertical)
        right.addWidget(self.text)
        right.addWidget(self.evidence)
        self.split = QSplitter(Qt.Orientation.Horizontal)
        self.split.addWidget(self.findings)
        self.split.addWidget(right)
        self.split.setSizes([450, 550])
        right.setSizes([400, 600])
        self.split.setChildrenCollapsible(False)
        self.split.splitterMoved.connect(self._fit_columns)
        top = QHBoxLayout()
        top.setContentsMargins(12, 6, 12, 6)
        top.setSpacing(8)
        top.addWidget(self.status, 1)
        top.addWidget(self.button)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(top)
        column.addWidget(self.split, 1)
        column.addStretch()  # takes the room while there is nothing to list

    # -- drawing -----------------------------------------------------------------------------------------------------

    def draw(self, view: View) -> None:
        run, examination = view.run, self.examination
        examined = examination.of(run.id)
        if run.id != self._run:
            self._run, self._chosen = run.id, 0
        self.button.setText(tr("Cancel") if examination.busy else tr("Examine this run"))
        ours = not examination.busy and not isinstance(run, RecordedRun)
        allow(self.button, tr("This program trained the run; those of other trainers are examined.") if ours else "")
        self.status.setText(status(run, examined, busy=examination.busy))
        self.entries = [] if examined is None else entries(examined)
        for table in (self.findings, self.evidence):
            table.set_look(view.theme, view.scale)
        self.text.setFont(view.theme.font("body", view.scale))
        self.findings.set_rows([entry.cells for entry in self.entries])
        self._fit_height()
        self._chosen = min(self._chosen, max(len(self.entries) - 1, 0))
        self.split.setVisible(bool(self.entries))
        self.show_chosen()
        self.findings.set_summary(self.summary(view))

    def show_chosen(self) -> None:
        """Show the finding that is chosen in sentences, with its evidence."""
        entry = self.entries[self._chosen] if self.entries else None
        self.findings.select_row(self._chosen if entry is not None else None)
        text = "" if entry is None else entry.text
        if text != self.text.toPlainText():
            self.text.setPlainText(text)
        evidence = () if entry is None else entry.evidence
        self.evidence.setVisible(bool(evidence))
        rows = [[e.step, e.row, e.token, e.what, " ".join(e.quote.split())] for e in evidence]
        self.evidence.set_rows(rows)
        self._filled = [n for n in KEPT if any(row[n] not in (None, "") for row in rows)]
        self._fit_columns()

    @Slot()
    def _fit_columns(self) -> None:
        """As many columns as have room, none that is empty: nothing is scrolled sideways."""
        rows = [entry.cells for entry in self.entries]
        listed = [n for n in NEEDED if any(row[n] not in (None, "") for row in rows)]
        for table, columns in ((self.findings, listed), (self.evidence, self._filled)):
            bar = table.verticalScrollBar().sizeHint().width()
            table.fit_columns(columns, table.width() - 2 * table.frameWidth() - bar)

    def _fit_height(self) -> None:
        """Of a table above the finding, no more height than its rows take: the finding has the rest."""
        if self.split.orientation() is Qt.Orientation.Vertical:
            self.findings.end_with_rows()
        else:
            self.findings.setMaximumHeight(LARGEST)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        upright = self.width() < self.height() * WIDE
        self.split.setOrientation(Qt.Orientation.Vertical if upright else Qt.Orientation.Horizontal)
        self._fit_height()
        self._fit_columns()

    def summary(self, view: View) -> str:
        return self.status.text()

    # -- input -------------------------------------------------------------------------------------------------------

    @Slot()
    def _on_button(self) -> None:
        run = self.workspace.view.run
        if self.examination.busy:
            self.examination.cancel()
        elif isinstance(run, RecordedRun):
            self._chosen = 0
            self.examination.start(run.id, run.path)

    @Slot(int)
    def _on_finding(self, place: int) -> None:
        if 0 <= place < len(self.entries):
            self._chosen = place
            self.show_chosen()

    @Slot(int)
    @Slot(int, str)
    def _on_place(self, place: int, key: str = "") -> None:
        """Show the step of a piece of evidence, and mark its completion and token."""
        run, entry = self.workspace.view.run, self.entries[self._chosen]
        if not isinstance(run, RecordedRun) or not 0 <= place < len(entry.evidence):
            return
        one = entry.evidence[place]
        position = run.position(one.step)
        if position is not None:
            self.workspace.move_to(position)
            self.workspace.select(row=None if one.row is None else one.row - 1, token=(one.token or 1) - 1)
            if one.token is not None:
                self.token_wanted.emit()
