"""The diagnosis and the audit of runs, computed in a separate process."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Signal, Slot

from app.clock import now
from app.jobs.runner import Runner
from app.workspace.workspace import Workspace
from grpo_core.foreign.readers import Readers

if TYPE_CHECKING:  # a program that opens no recorded run never needs them
    from grpo_core.trainers.health import Diagnosis
    from grpo_core.trainers.recorded_jobs import Verdict


@dataclasses.dataclass(frozen=True, kw_only=True)
class Result:
    """The results of examining a run.

    Attributes:
        diagnosis: findings of the diagnosis; None until they are known.
        verdict: the audit's verdict on the loss; None until it is known.
        problem: message explaining why the examination did not finish, or an empty string.
        head: number of updates at the last examination.
    """

    diagnosis: Diagnosis | None = None
    verdict: Verdict | None = None
    problem: str = ""
    head: int = 0

    @property
    def complete(self) -> bool:
        """Whether the examination has produced all its results."""
        return self.diagnosis is not None and self.verdict is not None


class Examination(Runner):
    """Examines one run at a time, and keeps the results on each open run.

    Attributes:
        run: id of the run examined now or last; empty if there is none.
        ended_at: when it ended, by the window's clock.

    Signals:
        changed: emitted when there are further results, or the examination has ended.
    """

    changed = Signal()

    def __init__(self, readers: Readers, parent: QObject | None = None) -> None:
        super().__init__(parent, self._on_arrived, self._on_ended)
        self._readers = readers
        self.run = ""
        self.seconds = self.ended_at = self._begun = 0.0
        self._results: dict[str, Result] = {}

    def of(self, run: str) -> Result | None:
        return self._results.get(run)

    def examine(self, run: str, path: Path, head: int, columns: str = "") -> None:
        """Examine the run with the id ``run`` and ``head`` updates, whose files are at ``path``.

        ``columns`` says what columns mean (:func:`grpo_core.foreign.formats.open_source`).

        Any other examination is cancelled. Earlier results for this run are kept until there are new ones.
        """
        self.run, self._begun = run, now()
        self._results[run] = dataclasses.replace(self._results.get(run, Result()), problem="", head=head)
        self.start(lambda poll: self._readers.results("examination", path, columns, poll=poll))
        self.changed.emit()

    def keep(self, runs: Collection[str]) -> None:
        """Discard the results of all runs except these (ids), and cancel the examination of any other run."""
        if self.busy and self.run not in runs:
            self.leave()
        if not self._results.keys() <= set(runs):
            self._results = {run: result for run, result in self._results.items() if run in runs}
            self.changed.emit()

    @Slot(object)
    def _on_arrived(self, result: Diagnosis | Verdict) -> None:
        from grpo_core.trainers.health import Diagnosis

        known = self._results[self.run]
        found: dict[str, Any] = {"diagnosis" if isinstance(result, Diagnosis) else "verdict": result}
        self._results[self.run] = dataclasses.replace(known, **found)
        self.changed.emit()

    @Slot(str)
    def _on_ended(self, why_not: str) -> None:
        self.ended_at = now()
        self.seconds = self.ended_at - self._begun
        self._results[self.run] = dataclasses.replace(self._results[self.run], problem=why_not)
        self.changed.emit()


def examination_of(workspace: Workspace) -> Examination:
    """Return the examination that the panels of ``workspace`` share."""
    if Examination not in workspace.shared:
        workspace.shared[Examination] = Examination(workspace.readers, workspace)
    shared: Examination = workspace.shared[Examination]
    return shared
