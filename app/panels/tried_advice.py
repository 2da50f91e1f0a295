"""Advice on the update shown that was tried in a job: the update and the next five, trained again with one change."""

from __future__ import annotations

from weakref import ref

from PySide6.QtCore import QObject, Signal, Slot

from app.jobs.jobs import Jobs
from app.jobs.runner import Runner
from app.workspace.view import View
from grpo_core.errors import RunFileError
from grpo_core.record import Step
from grpo_core.what_if.advice import found


class TriedAdvice(QObject):
    """Tries the advice on an update when asked, and keeps the sentences on what helps until another update is tried."""

    changed = Signal()

    def __init__(self, jobs: Jobs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._jobs = jobs
        self.runner = Runner(self)
        self.runner.arrived.connect(self._on_arrived)
        self._record: ref[Step] | None = None
        self._sentences: dict[str, list[str]] = {}

    def ask(self, view: View) -> None:
        """Try the advice on the update shown, if it is a bandit's with an unhealthy number."""
        step = view.step.step
        if step is None or view.step.record == self._record or not found(step):
            return
        try:
            before = view.run.step(step.step - 1) if step.step > 1 else None
        except RunFileError:  # it was dropped by thinning
            return
        self._record, self._sentences = view.step.record, {}
        self.runner.start(lambda poll: self._jobs.results("advice", step, before, poll=poll))

    def of(self, view: View, metric: str) -> str:
        """Return what helps against the value of a metric of the update shown. Empty if nothing is known."""
        known = self._record is not None and view.step.record == self._record
        return " ".join(self._sentences.get(metric, ())) if known else ""

    @Slot(object)
    def _on_arrived(self, result: tuple[str, str]) -> None:
        metric, sentence = result
        self._sentences.setdefault(metric, []).append(sentence)
        self.changed.emit()
