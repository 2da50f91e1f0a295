"""The window of a rehearsal: its progress, its findings, and a button to end it."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QDialog, QPlainTextEdit, QProgressBar, QWidget

from app.boxes import across, down
from app.export.process import exporting
from app.jobs.runner import CANCELLED, Runner
from app.teaching.export.lesson_check import SEEDS
from app.theme.labels import Label
from app.widgets.calm import push_button
from grpo_core.teaching.lessons import Lesson
from grpo_core.text import plural, tr

SIZE = 760, 520


class RehearsalWindow(QDialog):
    """Runs a lesson in the background with its own seed and others, and shows the report of ``lesson check``.

    Attributes:
        bar: the progress as a share of all steps with all seeds.
        end: the button that cancels the rehearsal or, afterwards, closes the window.
    """

    def __init__(self, lesson: Lesson, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._faults, self._steps = 0, 0
        self.setWindowTitle(tr("Rehearsal: {title}").format(title=lesson.title))
        self.resize(*SIZE)
        self.status, self.bar, self.report = Label(wraps=True), QProgressBar(), QPlainTextEdit()
        self.status.setText(tr("The lesson is running under six seeds; you can continue working."))
        self.bar.setRange(0, len(lesson.steps) * (SEEDS + 1))
        self.bar.setAccessibleName(tr("Steps rehearsed"))
        self.report.setReadOnly(True)
        self.report.setAccessibleName(tr("Findings"))
        self.end = push_button(tr("Cancel"), pressed=self._on_end)
        row = across((self.bar, 1), self.end)
        down(self.status, (self.report, 1), row, on=self)
        self.runner = Runner(self, self._on_arrived, self._on_ended)

    def start(self, called: str) -> None:
        """Start the rehearsal. ``called`` is the lesson's id, or its file."""
        self.runner.start(exporting("rehearsal", called))

    def done(self, result: int) -> None:
        self.runner.close()
        super().done(result)

    @Slot(object)
    def _on_arrived(self, result: dict[str, Any] | int) -> None:
        if isinstance(result, int):
            self.bar.setValue(result)
            return
        self._steps += 1
        self._faults += result["faults"]
        self.report.appendPlainText("\n".join(result["lines"]))

    @Slot(str)
    def _on_ended(self, why: str) -> None:
        self.end.setText(tr("Close"))
        self.bar.hide()
        rehearsed = plural(
            "{steps} step rehearsed. Faults: {faults}.", "{steps} steps rehearsed. Faults: {faults}.", self._steps
        ).format(steps=self._steps, faults=self._faults or tr("none", "faults"))
        self.status.setText(tr("The rehearsal was stopped.") if why == CANCELLED else why or rehearsed)

    @Slot()
    def _on_end(self) -> None:
        if self.runner.busy:
            self.runner.cancel()
        else:
            self.close()
