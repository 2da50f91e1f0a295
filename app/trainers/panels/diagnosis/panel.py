"""The Diagnosis panel: a run's faults, where they appear, what to change, and whether its loss can be reproduced."""

from __future__ import annotations

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QPushButton, QWidget

from app.boxes import across, down, plain_scroll_area
from app.theme.labels import Label, plain_tip
from app.theme.reasons import allow
from app.trainers.examination import examination_of
from app.trainers.panels.diagnosis.card import FindingCard
from app.trainers.panels.diagnosis.report import Entry, entries, status
from app.trainers.recorded_run import RecordedRun
from app.widgets.panel import Panel
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.text import plural, tr
from grpo_core.trainers.health import CHECKS, Evidence


class DiagnosisPanel(Panel):
    """A page with a card per finding, most urgent first. The evidence links to steps and tokens.

    Signals:
        completion_wanted: the selected completion is the evidence; show it.
        token_wanted: the selected token is the evidence; show it.
    """

    completion_wanted = Signal()
    token_wanted = Signal()
    plans = False
    large = True

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self.examination = examination_of(workspace)
        self.examination.changed.connect(self.redraw)
        self.cards: list[FindingCard] = []
        self.entries: list[Entry] = []
        self.status = Label(wraps=True)
        self.button = QPushButton()
        self.button.clicked.connect(self._on_button)
        self.button.setToolTip(
            plain_tip(
                plural(
                    "Read every update and look for {count} fault. Also recompute another trainer's losses.",
                    "Read every update and look for {count} faults. Also recompute another trainer's losses.",
                    len(CHECKS),
                ).format(count=len(CHECKS))
            )
        )
        top = across((self.status, 1), self.button, margins=(12, 6, 12, 6), spacing=8)
        inside = QWidget()
        self._listed = down(None, on=inside, margins=(12, 0, 12, 12), spacing=8)
        self.area = plain_scroll_area(inside)
        down(top, (self.area, 1), on=self, margins=0, spacing=0)

    # -- drawing -----------------------------------------------------------------------------------------------------

    def draw(self, view: View) -> None:
        run, examination = view.run, self.examination
        examined = examination.of(run.id)
        self.button.setText(tr("Cancel") if examination.busy else tr("Examine this run"))
        allow(self.button, "" if examination.busy or run.head else tr("There is no update yet."))
        self.status.setText(status(run, examined, busy=examination.busy))
        self.show_entries([] if examined is None else entries(examined))
        self.draw_cards(view)

    def draw_cards(self, view: View) -> None:
        """Draw every card in the current style, with a mark at the step shown."""
        run = view.run
        now = run.label(view.cursor.step) if view.cursor.step else None
        for card in self.cards:
            card.draw(view, now)

    def show_entries(self, listed: list[Entry]) -> None:
        """Create a card for each of ``listed``. Cards of unchanged entries are kept."""
        if listed == self.entries:
            return
        kept = {id(card.entry): card for card in self.cards}
        known = [next((kept[id(e)] for e in self.entries if e == one and id(e) in kept), None) for one in listed]
        for card in self.cards:
            self._listed.removeWidget(card)
            if card not in known:
                card.hide()
                card.deleteLater()
        self.entries = [one if card is None else card.entry for one, card in zip(listed, known, strict=True)]
        self.cards = [card or self._card(one) for one, card in zip(self.entries, known, strict=True)]
        for place, card in enumerate(self.cards):
            self._listed.insertWidget(place, card)
            card.show()

    def _card(self, entry: Entry) -> FindingCard:
        card = FindingCard(entry)
        card.place_wanted.connect(self.show_place)
        card.step_wanted.connect(self._on_step)
        return card

    def summary(self, view: View) -> str:
        return self.status.text()

    # -- input -------------------------------------------------------------------------------------------------------

    @Slot()
    def _on_button(self) -> None:
        run = self.workspace.view.run
        if self.examination.busy:
            self.examination.cancel()
        else:
            columns = run.source.columns if isinstance(run, RecordedRun) else ""
            self.examination.start(run.id, run.path, run.head, columns)

    @Slot(object, bool)
    def show_place(self, one: Evidence, in_front: bool) -> None:
        """Show the step of a piece of evidence, and select its completion and token.

        ``in_front``: bring the panel of completions or tokens to the front."""
        if self._on_step(one.step):
            self.workspace.select(row=None if one.row is None else one.row - 1, token=(one.token or 1) - 1)
            if in_front and one.row is not None:
                (self.completion_wanted if one.token is None else self.token_wanted).emit()

    @Slot(int)
    def _on_step(self, label: int) -> bool:
        """Show the update with the number ``label``, and return whether the run has it."""
        position = self.workspace.view.run.position(label)
        if position is not None:
            self.workspace.move_to(position)
        return position is not None
