"""The diagnosis and the audit of a recorded run, computed in a process of their own."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot

from app.experiments.job_process import JobProcess
from app.experiments.runner import Poll, Runner
from grpo_core.experiments.recorded_jobs import Verdict, diagnosis_from
from grpo_core.health import Diagnosis
from grpo_core.host.wire import Message


class Examination(QObject):
    """Examines one run at a time.

    Attributes:
        run: id of the run that is or was examined, empty for none.
        diagnosis, verdict: what was found out so far.
        problem: why it did not come to its end; empty otherwise.

    Signals:
        changed: there is more of it, or it has ended.
    """

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.run, self.problem = "", ""
        self.diagnosis: Diagnosis | None = None
        self.verdict: Verdict | None = None
        self._runner = Runner(self)
        self._runner.arrived.connect(self._on_arrived)
        self._runner.ended.connect(self._on_ended)

    @property
    def busy(self) -> bool:
        """Whether a run is being examined."""
        return self._runner.busy

    def start(self, run: str, path: Path) -> None:
        """Examine the run ``run`` whose files are at ``path``."""
        self.run, self.problem, self.diagnosis, self.verdict = run, "", None, None
        self._runner.start(partial(_examined, path))
        self.changed.emit()

    def cancel(self) -> None:
        """Give it up; what was found out stays."""
        self._runner.cancel()

    def close(self) -> None:
        """The program closes."""
        self._runner.close()

    @Slot(object)
    def _on_arrived(self, message: Message) -> None:
        if "diagnosis" in message:
            self.diagnosis = diagnosis_from(message["diagnosis"])
        else:
            self.verdict = Verdict(**message["verdict"])
        self.changed.emit()

    @Slot(str)
    def _on_ended(self, why_not: str) -> None:
        self.problem = why_not
        self.changed.emit()


def _examined(path: Path, poll: Poll) -> Iterator[Message]:
    process = JobProcess()
    try:
        yield from process.results("diagnosis", {"path": str(path)}, poll)
    finally:
        process.close()
