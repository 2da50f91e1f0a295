"""The diagnosis and the audit of a recorded run, computed in a process of their own."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot

from app.experiments.jobs import Jobs
from app.experiments.runner import Poll, Runner
from grpo_core.experiments.recorded_jobs import Verdict
from grpo_core.health import Diagnosis


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

    def __init__(self, jobs: Jobs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._jobs = jobs
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
        self._runner.start(partial(_examined, self._jobs, path))
        self.changed.emit()

    def cancel(self) -> None:
        """Give it up; what was found out stays."""
        self._runner.cancel()

    def close(self) -> None:
        """The program closes."""
        self._runner.close()

    @Slot(object)
    def _on_arrived(self, result: Diagnosis | Verdict) -> None:
        if isinstance(result, Diagnosis):
            self.diagnosis = result
        else:
            self.verdict = result
        self.changed.emit()

    @Slot(str)
    def _on_ended(self, why_not: str) -> None:
        self.problem = why_not
        self.changed.emit()


def _examined(jobs: Jobs, path: Path, poll: Poll) -> Iterator[Diagnosis | Verdict]:
    yield from jobs.results("examination", str(path), poll=poll)
