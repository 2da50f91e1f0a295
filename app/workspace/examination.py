"""The diagnosis and the audit of recorded runs, computed in a process of their own."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Collection, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from app.jobs.runner import Poll, Runner
from grpo_core.foreign.readers import Readers

if TYPE_CHECKING:  # a program that opens no recorded run never needs them
    from grpo_core.health import Diagnosis
    from grpo_core.jobs.recorded_jobs import Verdict


@dataclasses.dataclass(frozen=True, kw_only=True)
class Result:
    """The results on a run that is or was examined.

    Attributes:
        diagnosis: its findings; None before they are there.
        verdict: what the audit says of its loss; None before it is there.
        problem: why the examination did not come to its end; empty otherwise.
        head: updates that the run had when it was examined last.
    """

    diagnosis: Diagnosis | None = None
    verdict: Verdict | None = None
    problem: str = ""
    head: int = 0

    @property
    def complete(self) -> bool:
        """Whether all that an examination finds out is there."""
        return self.diagnosis is not None and self.verdict is not None


class Examination(QObject):
    """Examines one recorded run at a time, and keeps what was found out about each run that is open.

    Attributes:
        run: id of the run that is being examined or was examined last, empty for none.
        seconds: that the last examination took.
        ended_at: when it ended, by ``time.monotonic``.

    Signals:
        changed: there is more of it, or it has ended.
        ended: the examination of this run (its id) is over, complete or not.
    """

    changed = Signal()
    ended = Signal(str)

    def __init__(self, readers: Readers, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._readers = readers
        self.run = ""
        self.seconds = self.ended_at = self._begun = 0.0
        self._results: dict[str, Result] = {}
        self._runner = Runner(self)
        self._runner.arrived.connect(self._on_arrived)
        self._runner.ended.connect(self._on_ended)

    @property
    def busy(self) -> bool:
        """Whether a run is being examined."""
        return self._runner.busy

    def of(self, run: str) -> Result | None:
        """The results on the run with this id. None where it was never examined."""
        return self._results.get(run)

    def start(self, run: str, path: Path, head: int) -> None:
        """Examine the run with the id ``run`` and ``head`` updates, whose files are at ``path``. Another examination is
        given up.

        What is known of it stays until there is something new.
        """
        self.run, self._begun = run, time.monotonic()
        self._results[run] = dataclasses.replace(self._results.get(run, Result()), problem="", head=head)
        self._runner.start(partial(_examined, self._readers, path))
        self.changed.emit()

    def keep(self, runs: Collection[str]) -> None:
        """Forget what is known of all runs but these (ids), and give up an examination of another one."""
        if self._runner.busy and self.run not in runs:
            self._runner.leave()
        if not self._results.keys() <= set(runs):
            self._results = {run: result for run, result in self._results.items() if run in runs}
            self.changed.emit()

    def cancel(self) -> None:
        """Give it up. What was found out stays."""
        self._runner.cancel()

    def close(self) -> None:
        """The program closes."""
        self._runner.close()

    @Slot(object)
    def _on_arrived(self, result: Diagnosis | Verdict) -> None:
        from grpo_core.health import Diagnosis

        known = self._results[self.run]
        self._results[self.run] = (
            dataclasses.replace(known, diagnosis=result)
            if isinstance(result, Diagnosis)
            else dataclasses.replace(known, verdict=result)
        )
        self.changed.emit()

    @Slot(str)
    def _on_ended(self, why_not: str) -> None:
        self.ended_at = time.monotonic()
        self.seconds = self.ended_at - self._begun
        self._results[self.run] = dataclasses.replace(self._results[self.run], problem=why_not)
        self.changed.emit()
        self.ended.emit(self.run)


def _examined(readers: Readers, path: Path, poll: Poll) -> Iterator[Diagnosis | Verdict]:
    yield from readers.results("examination", path, poll=poll)
