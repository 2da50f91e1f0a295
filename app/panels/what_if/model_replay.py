"""The questions of a what-if that only a language model can answer, pending or refused."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, Slot

from app.panels.what_if.question import WhatIfQuestion
from app.workspace.workspace import Workspace
from grpo_core.errors import GrpoError
from grpo_core.questions import Replay, Replayed
from grpo_core.record import Step


class ModelReplay(QObject):
    """Sends the panel's current question to the model. Answers arrive between two updates, whatever is shown by then.

    Signals:
        changed: a question was answered or refused.
    """

    changed = Signal()

    def __init__(self, workspace: Workspace, question: WhatIfQuestion, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._workspace, self._question = workspace, question
        self._waiting: dict[Replay, str] = {}
        self._refused: dict[tuple[str, Replay], str] = {}
        workspace.answered.connect(self._on_answered)
        workspace.refused.connect(self._on_refused)

    @Slot()
    def ask(self) -> None:
        """Have a copy of the model compute the update shown under the what-if's settings."""
        view = self._workspace.view
        question = self._current_question(view.step.step)
        if question is not None:
            self._waiting[question] = view.run.id
            self._refused.pop((view.run.id, question), None)
            self.changed.emit()
            self._workspace.ask(question)

    def waits(self, step: Step) -> bool:
        """Return whether the current question has been asked but not yet answered."""
        question = self._current_question(step)
        return question is not None and self._waiting.get(question) == self._workspace.view.run.id

    def refusal(self, step: Step) -> str:
        """Return the reason why the current question was refused, or an empty string if it was not."""
        question = self._current_question(step)
        return "" if question is None else self._refused.get((self._workspace.view.run.id, question), "")

    def _current_question(self, step: Step | None) -> Replay | None:
        """Return the panel's current question, or None if its settings are incompatible."""
        try:
            return None if step is None else self._question.replay(step)
        except GrpoError:
            return None

    @Slot(object, object)
    def _on_answered(self, question: object, answer: object) -> None:
        if isinstance(question, Replay) and isinstance(answer, Replayed) and question in self._waiting:
            self._question.keep(self._waiting.pop(question), question, answer)
            self.changed.emit()

    @Slot(object, str)
    def _on_refused(self, question: object, sentence: str) -> None:
        if isinstance(question, Replay) and question in self._waiting:
            self._refused[self._waiting.pop(question), question] = sentence
            self.changed.emit()
