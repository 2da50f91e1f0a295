"""What was recorded and what is reported: a model's answers over its training, and cited results beside them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QWidget

from app.examples import RECORDED
from app.help.published import PARTS
from app.help.published_view import WHOSE, PublishedView
from app.lessons.interactives.base import Interactive, note_label, pages
from app.panels.evolution import EvolutionPanel
from app.workspace.answers import watched
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.lessons import Offer

ANSWERS = "answers"
CHOSEN = 1
"""The prompt whose answers are listed at first: one that has to change."""


class Reported(Interactive):
    """The panel Evolution on the lesson's run, or a page of cited text."""

    offer = Offer(shows=(ANSWERS, *PARTS), checks=("right",))

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self.evolution = EvolutionPanel(workspace)
        self.evolution.place = CHOSEN
        self.page = PublishedView()
        self.page.refused.connect(self._on_refused)
        self.note = note_label("muted")
        pictures, self._stack = pages(self.evolution, self.page)
        self.lay_out((pictures, 1), self.note, spacing=6)

    def draw(self, view: View) -> None:
        answers = self.shows == ANSWERS
        self._stack.setCurrentWidget(self.evolution if answers else self.page)
        self.note.setFont(view.theme.font("body", view.scale))
        self.note.setText(view.run.read_only)
        self.note.setVisible(answers and bool(view.run.read_only))
        if answers:
            self.evolution.on_frame()
        else:
            self.page.show_part(self.shows, view.theme, view.scale)

    def summary(self, view: View) -> str:
        if self.shows != ANSWERS:
            return f"{PARTS[self.shows]}. {WHOSE}"
        return f"{self.evolution.summary(view)} {RECORDED if view.run.read_only else ''}".strip()

    def _answers(self) -> Mapping[str, Callable[[], float]]:
        return {"right": self._right}

    def _right(self) -> float:
        """Watched prompts that are answered right at the update shown."""
        view = self.workspace.view
        step, origin = view.step.step, view.run.origin
        if step is None or step.watched_tokens is None:
            return math.nan
        return float(sum(watched(step, place, origin)[1].right is True for place in range(len(origin.watched))))

    @Slot(str)
    def _on_refused(self, sentence: str) -> None:
        self.workspace.problem.emit(sentence, "warning")

    def let_go(self) -> None:
        self.evolution.let_go()
