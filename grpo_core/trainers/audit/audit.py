"""Audit of a recorded run: recompute it with the trainer's settings, compare, and locate deviations.

Comparisons follow causal order: advantages before losses, an update before the next. If a number deviates, or the
record itself shows that a tensor is wrong, the cause is searched for (``causes.py``).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from grpo_core.errors import NotRecordedError, RunFileError, SettingsError
from grpo_core.foreign.recording import Source
from grpo_core.record import Step
from grpo_core.trainers.audit import causes, compare, given
from grpo_core.trainers.audit.causes import NAMED, SUSPECTED, Cause
from grpo_core.trainers.audit.compare import Comparison
from grpo_core.trainers.audit.put_right import PutRight, first_named, put_right
from grpo_core.trainers.changes.evidence import RECORDED, Figure, figures
from grpo_core.trainers.changes.numbers import Update
from grpo_core.trainers.changes.precision import Precision

KEPT = 20_000_000
"""Maximum number of values in cached updates.

The cache makes it unnecessary to read updates again to find and verify causes.
"""


@dataclass(frozen=True, kw_only=True)
class StepAudit:
    """The findings of an audit for one update: each of the trainer's numbers next to the recomputed one.

    Attributes:
        comparisons: every number of the trainer compared with ours.
        skipped: the reason why a comparison was not possible; empty if all were.
        precision: precision of log-probabilities in the file, if lower than the trainer's; otherwise None.
        measured: measurements of the tensors that the loss takes as given; None for an unreadable update.
        figures: the trainer's own metrics, compared with those that follow from the record.
    """

    position: int
    label: int
    comparisons: tuple[Comparison, ...] = ()
    skipped: str = ""
    precision: Precision | None = None
    measured: given.Measured | None = None
    figures: tuple[Figure, ...] = ()

    @property
    def departing(self) -> tuple[Comparison, ...]:
        """The comparisons that are not explained by rounding, advantages first."""
        return tuple(c for c in self.comparisons if not c.agrees)


@dataclass(frozen=True, kw_only=True)
class Audit:
    """The audit of a complete run.

    Attributes:
        causes: causes of deviations, and those evident from the record itself, in order of priority.
        remainder: sentence that describes the pattern of unexplained deviations; empty if there are none.
        first_pass: number of tokens whose old log-probabilities were compared with those of the first pass.
        put_right: the first deviating update compared with itself after correcting the named cause; None if no cause is
            named.
    """

    steps: tuple[StepAudit, ...]
    causes: tuple[Cause, ...] = ()
    remainder: str = ""
    first_pass: int = 0
    figures: tuple[Figure, ...] = ()
    put_right: PutRight | None = None

    @property
    def explanations(self) -> tuple[str, ...]:
        """Explanations of the deviating updates, as sentences.

        There are several if several explain the numbers equally well.
        """
        those = [cause.sentences for cause in self.causes if cause.grade != SUSPECTED]
        return tuple(dict.fromkeys(sentence for sentences in those for sentence in sentences))

    @property
    def suspicions(self) -> tuple[str, ...]:
        """Suspicions that the numbers suggest without proving, as sentences."""
        return tuple(s for cause in self.causes if cause.grade == SUSPECTED for s in cause.sentences)

    @property
    def compared(self) -> int:
        return sum(len(step.comparisons) for step in self.steps)

    @property
    def first(self) -> tuple[StepAudit, Comparison] | None:
        """The first deviating number. None if all agree."""
        return next(((step, step.departing[0]) for step in self.steps if step.departing), None)

    @property
    def agrees(self) -> bool:
        """Whether at least one number was compared, none deviates, and no tensor is known to be wrong."""
        return self.compared > 0 and self.first is None and not any(cause.grade == NAMED for cause in self.causes)

    @property
    def precision(self) -> Precision | None:
        """The lowest precision of log-probabilities in the file. None if it is as high as the trainer's."""
        those = [step.precision for step in self.steps if step.precision is not None]
        return max(those, key=lambda precision: float(precision.half_unit(np.ones(()))), default=None)

    def worst(self, what: str) -> Comparison | None:
        """Return the "loss" or "advantage" comparison with the largest difference relative to the rounding tolerance.

        None if there is no such comparison.
        """
        those = [c for step in self.steps for c in step.comparisons if c.what == what]
        return max(those, key=lambda c: c.excess, default=None)


@np.errstate(all="ignore")  # non-finite numbers deviate and are reported
def audit(run: Source, positions: Iterable[int] | None = None, poll: Callable[[], None] = lambda: None) -> Audit:
    """Recompute updates of a recorded run, compare them, and search for the causes of deviations.

    Args:
        positions: updates to audit, counted from 1; by default all.
        poll: called after each update.
    """
    auditing = Auditing(run)
    for position in range(1, len(run) + 1) if positions is None else positions:
        auditing.take(position)
        poll()
    return auditing.result()


class Auditing:
    """An audit that processes one update after another. Updates are read on demand and cached."""

    def __init__(self, run: Source) -> None:
        self._run = run
        self._trainer_values: dict[str, Any] = {}
        self._taken: dict[int, StepAudit] = {}
        self._kept: OrderedDict[int, Update] = OrderedDict()
        self._size = 0

    @property
    def departing(self) -> int:
        """Number of updates with a deviation."""
        return sum(bool(step.departing) for step in self._taken.values())

    @np.errstate(all="ignore")
    def take(self, position: int, run: Source | None = None) -> None:
        """Compare the numbers of the update at ``position``, counted from 1.

        ``run`` replaces the run that is read, if it has newer data on an update already compared.
        """
        if run is not None:
            self._run = run
            known = self._kept.pop(position, None)
            self._size -= 0 if known is None else _size(known.step)
        label = self._run.labels[position - 1]
        try:
            update = self.read(position)
        except (RunFileError, NotRecordedError) as error:
            self._taken[position] = StepAudit(position=position, label=label, skipped=str(error))
            return
        skipped, comparisons = update.skipped, compare.compared("advantage", update)
        try:
            comparisons += compare.compared("loss", update)
        except (RunFileError, SettingsError) as error:  # the record lacks what its settings need
            skipped = str(error)
        measured, shown = None, list[Figure]()
        with suppress(SettingsError):
            measured = given.measured(update, label)
            shown = list(figures(update))
        self._taken[position] = StepAudit(
            position=position,
            label=label,
            comparisons=tuple(comparisons),
            skipped=skipped,
            precision=update.precision,
            measured=measured,
            figures=tuple(shown),
        )

    @np.errstate(all="ignore")
    def result(self) -> Audit:
        steps = [self._taken[position] for position in sorted(self._taken)]
        measured = [step.measured for step in steps if step.measured is not None]
        seen = [one for step in steps for one in step.figures]
        found: list[Cause] = []
        for what in ("advantage", "loss"):
            compared = [
                causes.Departing(position=step.position, label=step.label, excess=max(each))
                for step in steps
                if (each := [c.excess for c in step.comparisons if c.what == what])
            ]
            found += causes.of_departures(what, compared, self.read)
        found += given.misplaced(measured, self._trainer_values)
        if not _explained(found, "loss"):
            found += given.other_ratios(seen)
        unexplained = [what for what in ("advantage", "loss") if not _explained(found, what)]
        shape = compare.shape([[c for c in step.comparisons if c.what in unexplained] for step in steps])
        righted = None
        if (claim := first_named(found)) is not None:
            first = next(step for step in steps if any(c.what == claim.what for c in step.departing))
            righted = put_right(claim, self.read(first.position), first.label)
        return Audit(
            steps=tuple(steps),
            causes=tuple(sorted(found, key=lambda cause: cause.grade == SUSPECTED)),
            remainder=shape,
            first_pass=sum(u.old[RECORDED].count for u in measured if u.old),
            figures=tuple(seen),
            put_right=righted,
        )

    def read(self, position: int) -> Update:
        """Return the update at ``position``, counted from 1. A RunFileError or NotRecordedError says why it cannot."""
        if position not in self._kept:
            before = None
            if position > 1:
                with suppress(RunFileError, NotRecordedError):
                    known = self._kept.get(position - 1)
                    before = self._run.step(position - 1) if known is None else known.step
            step, skipped, theirs = self._run.step(position), self._run.incomplete(position), None
            try:
                theirs = None if skipped else self._run.losses(position)
            except (RunFileError, SettingsError) as error:
                skipped = str(error)
            self._kept[position] = Update(
                step=step,
                theirs=theirs,
                skipped=skipped,
                processes=self._run.processes,
                previous=before,
                reports={report.step: report.numbers for report in self._run.reports(position)},
            )
            self._trainer_values = self._trainer_values or step.settings.recorded.trainer_values
            self._size += _size(step)
            while self._size > KEPT and len(self._kept) > 2:
                self._size -= _size(self._kept.popitem(last=False)[1].step)
        return self._kept[position]


def _size(step: Step) -> int:
    return int(step.mask.size) * (2 * len(step.logp) + 4)


def _explained(found: Iterable[Cause], what: str) -> bool:
    return any(getattr(claim, "what", "") == what for cause in found for claim in cause.claims)
