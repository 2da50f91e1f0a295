"""Continuous diagnosis and audit of a recorded run that is still growing, with events for new and resolved findings."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from grpo_core.errors import NotRecordedError, RunFileError
from grpo_core.foreign.formats import refreshed
from grpo_core.foreign.recording import Source
from grpo_core.foreign.source import RemoteSource
from grpo_core.text import tr
from grpo_core.trainers.audit.audit import Auditing
from grpo_core.trainers.audit.causes import SUSPECTED
from grpo_core.trainers.health.diagnose import Diagnosing
from grpo_core.trainers.health.finding import Diagnosis
from grpo_core.trainers.health.grade import Grade

AUDIT = "audit"
"""Name used for the finding of the audit. The other findings have the names of their checks."""


@dataclass(frozen=True, kw_only=True)
class Event:
    """A finding that has appeared or been resolved.

    Attributes:
        name: name of the check, or :data:`AUDIT`.
        step: the trainer's number for the newest update.
        began: the trainer's number for the update in which it began; None if unknown.
        what: what was observed, in sentences; empty if it has ended.
        change: what to change, in a sentence; empty if unknown.
    """

    name: str
    title: str
    grade: Grade
    step: int
    began: int | None = None
    ended: bool = False
    what: str = ""
    change: str = ""

    @property
    def line(self) -> str:
        if self.ended:
            return tr("Step {step}: no longer found: {title}").format(step=self.step, title=self.title)
        head = tr("Step {step}: {title} ({grade}).").format(step=self.step, title=self.title, grade=self.grade.word)
        return " ".join(" ".join(filter(None, (head, self.what, self.change))).split())

    def as_json(self, path: str) -> dict[str, Any]:
        """Return JSON-serializable values. ``path`` is the path of the run."""
        kind = {"event": "ended" if self.ended else "began", "check": self.name, "severity": self.grade.value}
        return {"run": path} | kind | {n: getattr(self, n) for n in ("title", "step", "began", "what", "change")}


class Watch:
    """A recorded run that is checked repeatedly, with everything found out about it so far.

    Attributes:
        diagnosis: diagnosis of its updates; None before the first check.
        ended: set when the stop condition of the caller is met.
        read_at: time at which new data was last read, by ``time.monotonic``.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.diagnosis: Diagnosis | None = None
        self.ended = False
        self.read_at = time.monotonic()
        self._found: dict[str, Event] = {}
        self._begin()
        self._stamp: int | None = None

    def _begin(self) -> None:
        """Discard all data about updates and begin again."""
        self._diagnosing = Diagnosing()
        self._auditing = Auditing(self.source) if self.source.has_losses else None
        self._stamps: dict[int, tuple[int, ...]] = {}
        self._searched = 0

    @property
    def worst(self) -> Grade | None:
        return min((event.grade for event in self._found.values()), key=lambda grade: grade.rank, default=None)

    @property
    def found(self) -> int:
        return len(self._found)

    def reopen(self, source: Source) -> None:
        """Continue with the same run after its reader has ended and been restarted."""
        self.source, self._stamp = source, None

    def look(self) -> Iterator[Event]:
        """Examine new data, and yield new and resolved findings.

        Raises:
            RunFileError: the run can no longer be read.
        """
        source = self.source
        found = source.refreshed(self._stamp) if isinstance(source, RemoteSource) else refreshed(source, self._stamp)
        self._stamp, fresh, goes_on = found
        if fresh is not None:
            self.source = fresh
            if not goes_on:
                self._begin()
            if not len(fresh):
                raise RunFileError(tr("{path} no longer contains updates.").format(path=fresh.path))
        changed = [position for position in range(1, len(self.source) + 1) if self._is_new(position)]
        for position in changed:
            self._diagnosing.take(self.source, position)
            if self._auditing is not None and self.source.has_losses:
                self._auditing.take(position, self.source)
        if changed:
            self.read_at = time.monotonic()
            yield from self._compared()

    def _is_new(self, position: int) -> bool:
        """Return whether an update has not been read yet, or may have changed since it was read, as the last two
        can.
        """
        if position in self._stamps and position < len(self.source) - 1:
            return False
        try:
            stamp = self.source.stamp(position)
        except (RunFileError, NotRecordedError):
            stamp = ()
        before = self._stamps.get(position)
        self._stamps[position] = stamp
        return stamp != before

    def _compared(self) -> Iterator[Event]:
        self.diagnosis = self._diagnosing.result(self.source.settings)
        newest = self.source.labels[-1]
        now = {
            one.check: Event(
                name=one.check,
                title=one.title,
                grade=one.grade,
                step=newest,
                began=one.began,
                what=one.sentence,
                change=one.change,
            )
            for one in self.diagnosis.findings
        }
        now |= self._departure(newest)
        before, self._found = self._found, now
        for name, event in now.items():
            known = before.get(name)
            if known is None or known.grade is not event.grade or (name == AUDIT and known is not event):
                yield event
        for name, event in before.items():
            if name not in now:
                yield Event(name=name, title=event.title, grade=event.grade, step=newest, began=event.began, ended=True)

    def _departure(self, newest: int) -> dict[str, Event]:
        """Audit the updates read so far.

        Return the finding by its name, :data:`AUDIT`, or nothing if no number deviates.

        The cause is searched for when a deviation appears, and again when the number of deviating updates has doubled.
        """
        departing = 0 if self._auditing is None else self._auditing.departing
        known = self._found.get(AUDIT)
        if self._auditing is None or not departing:
            return {}
        if known is not None and departing < 2 * self._searched:
            return {AUDIT: known}
        self._searched = departing
        result = self._auditing.result()
        assert result.first is not None
        step, number = result.first
        what = tr("{what}, {place}: the trainer has {theirs:.9g}, but its settings give {ours:.9g}.").format(
            what=number.what, place=number.place, theirs=number.theirs, ours=number.ours
        )
        causes = [cause for cause in result.causes if cause.grade != SUSPECTED]
        sentences = [sentence for cause in causes for sentence in cause.sentences]
        event = Event(
            name=AUDIT,
            title=tr("Recorded numbers depart from the settings"),
            grade=Grade.SERIOUS,
            step=newest,
            began=step.label,
            what=" ".join([what, *sentences[:1]]),
            change=causes[0].remedy if causes else "",
        )
        return {AUDIT: event}
