"""Completions and the trainer's log of one folder as one run, joined by the trainer's steps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from grpo_core.errors import NotRecordedError, RunFileError
from grpo_core.foreign.recording import Completions, Report, Source, Texts
from grpo_core.record import Step
from grpo_core.text import tr
from grpo_core.trainers.importers.scalars import ScalarRun, logs_of

NOT_HERE = tr("No completions are recorded at this step.")


class Joined(Source):
    """A source of completions with the reports of a log beside it."""

    def __init__(self, rows: Source, log: ScalarRun) -> None:
        self._rows, self._log = rows, log
        self.settings, self.processes = rows.settings, rows.processes
        self.path, self.title, self.siblings = rows.path, rows.title, rows.siblings
        self._place()

    def _place(self) -> None:
        self.partial = self._rows.partial
        self.labels = sorted({*self._rows.labels, *self._log.labels})
        self._at_rows = {label: position for position, label in enumerate(self._rows.labels, 1)}
        self._at_log = {label: position for position, label in enumerate(self._log.labels, 1)}

    @property
    def notes(self) -> Sequence[str]:  # type: ignore[override]
        joined = tr("The trainer's reports are those of {name}.").format(name=self._log.log.name)
        return [*self._rows.notes, joined, *self._log.notes]

    @property
    def has_losses(self) -> bool:  # type: ignore[override]
        return self._rows.has_losses

    def refresh(self) -> int:
        self._rows.refresh()
        self._log.refresh()
        self._place()
        return len(self)

    def _position(self, position: int) -> int:
        found = self._at_rows.get(self.labels[position - 1])
        if found is None:
            raise NotRecordedError(NOT_HERE)
        return found

    def step(self, position: int) -> Step:
        return self._rows.step(self._position(position))

    def completions(self, position: int) -> Completions:
        return self._rows.completions(self._position(position))

    def texts(self, position: int) -> Texts:
        return self._rows.texts(self._position(position))

    def measured(self, position: int) -> tuple[Completions | None, Step | None]:
        found = self._at_rows.get(self.labels[position - 1])
        return (None, None) if found is None else self._rows.measured(found)

    def losses(self, position: int) -> np.ndarray | None:
        return self._rows.losses(self._position(position))

    def incomplete(self, position: int) -> str:
        found = self._at_rows.get(self.labels[position - 1])
        return NOT_HERE if found is None else self._rows.incomplete(found)

    def reports(self, position: int) -> Sequence[Report]:
        label = self.labels[position - 1]
        rows, log = self._at_rows.get(label), self._at_log.get(label)
        own = [] if rows is None else self._rows.reports(rows)
        return [*(own if log is None else self._log.reports(log))]

    def stamp(self, position: int) -> tuple[int, ...]:
        label = self.labels[position - 1]
        rows, log = self._at_rows.get(label), self._at_log.get(label)
        return (*(() if rows is None else self._rows.stamp(rows)), *(() if log is None else self._log.stamp(log)))


def with_log(rows: Source, folder: Path) -> Source:
    """Return a source of completions, joined with the trainer's log in its folder if that has steps in common."""
    place = next(logs_of(folder), None)
    if place is None:
        return rows
    try:
        log = ScalarRun(folder, place)
    except RunFileError:
        return rows
    return Joined(rows, log) if {*log.labels} & {*rows.labels} else rows
