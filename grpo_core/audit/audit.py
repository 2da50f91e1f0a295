"""A recorded run, recomputed with the trainer's settings: it agrees to so many digits, or here is where it departs.

The order is that of cause: advantages are compared before losses, an update before the next. Where something departs,
known alternatives are tried (``hypotheses.py``); all that fit every departing update are named, none is chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from grpo_core import recompute
from grpo_core.audit import compare, hypotheses
from grpo_core.audit.compare import Comparison
from grpo_core.audit.hypotheses import AS_SET, Hypothesis, constant_factor
from grpo_core.audit.precision import Precision, precision_of
from grpo_core.errors import NotRecordedError, RunFileError, SettingsError
from grpo_core.record import Step
from grpo_core.text import tr

TRIED = 6
"""Departing updates on which explanations are tried: one alone fits too much."""
SLOPE = 0.02
"""How far from 1 the slope of old against new log-probabilities may be in the first pass."""


class Traced(Protocol):
    """A recorded run with the losses that its trainer computed."""

    processes: int

    @property
    def labels(self) -> Sequence[int]: ...
    def __len__(self) -> int: ...
    def step(self, position: int) -> Step: ...
    def losses(self, position: int) -> np.ndarray | None: ...
    def incomplete(self, position: int) -> str: ...


@dataclass(frozen=True, kw_only=True)
class StepAudit:
    """What an audit found of one update: each of the trainer's numbers beside the recomputed one.

    Attributes:
        position: from 1.
        label: the trainer's number.
        comparisons: every number of the trainer beside ours.
        skipped: why something could not be compared; empty where everything was.
        precision: what the file keeps of log-probabilities, where that is less than the trainer computed with.
    """

    position: int
    label: int
    comparisons: tuple[Comparison, ...] = ()
    skipped: str = ""
    precision: Precision | None = None

    @property
    def departing(self) -> tuple[Comparison, ...]:
        """What rounding does not explain, advantages first."""
        return tuple(c for c in self.comparisons if not c.agrees)


@dataclass(frozen=True, kw_only=True)
class Audit:
    """A whole run.

    Attributes:
        steps: of the updates that were looked at.
        explanations: what fits the departing updates, in sentences; several where several fit.
        suspicions: what the numbers hint at without proving it.
    """

    steps: tuple[StepAudit, ...]
    explanations: tuple[str, ...] = ()
    suspicions: tuple[str, ...] = field(default=())

    @property
    def compared(self) -> int:
        """Numbers that were compared."""
        return sum(len(step.comparisons) for step in self.steps)

    @property
    def first(self) -> tuple[StepAudit, Comparison] | None:
        """The first number that departs, None where all agree."""
        return next(((step, step.departing[0]) for step in self.steps if step.departing), None)

    @property
    def agrees(self) -> bool:
        """Whether something was compared and nothing departs."""
        return self.compared > 0 and self.first is None

    @property
    def precision(self) -> Precision | None:
        """The coarsest precision in which the file keeps log-probabilities; None where nothing was rounded for it."""
        those = [step.precision for step in self.steps if step.precision is not None]
        return max(those, key=lambda precision: float(precision.half_unit(np.ones(()))), default=None)

    def worst(self, what: str) -> Comparison | None:
        """The largest difference among all "loss" or "advantage" comparisons, measured by what rounding allows."""
        those = [c for step in self.steps for c in step.comparisons if c.what == what]
        return max(those, key=lambda c: c.excess, default=None)


@np.errstate(all="ignore")  # what is not finite departs, and is said
def audit(
    run: Traced, positions: Sequence[int] | None = None, progress: Callable[[int, int], None] | None = None
) -> Audit:
    """Recompute updates of a recorded run and compare.

    Args:
        run: the recorded run.
        positions: which updates, from 1; by default all.
        progress: told (updates done, updates in all) after each update.
    """
    wanted = list(positions) if positions is not None else list(range(1, len(run) + 1))
    steps: list[StepAudit] = []
    departing: list[tuple[int, Step]] = []
    slopes: list[float] = []
    for done, position in enumerate(wanted, 1):
        report, step = _step_audit(run, position)
        steps.append(report)
        if step is not None:
            if report.departing and len(departing) < TRIED:
                departing.append((position, step))
            slopes += list(_slope(step))
        if progress is not None:
            progress(done, len(wanted))
    return Audit(
        steps=tuple(steps), explanations=tuple(_explanations(run, departing)), suspicions=tuple(_temperature(slopes))
    )


def _step_audit(run: Traced, position: int) -> tuple[StepAudit, Step | None]:
    label = run.labels[position - 1]
    try:
        step = run.step(position)
    except (RunFileError, NotRecordedError) as error:
        return StepAudit(position=position, label=label, skipped=str(error)), None
    comparisons = compare.advantages(step)
    skipped = run.incomplete(position)
    try:
        theirs = None if skipped else run.losses(position)
        if theirs is not None:
            comparisons += compare.losses(step, theirs, run.processes)
    except (RunFileError, SettingsError) as error:  # the record lacks what its settings ask for
        skipped = str(error)
    report = StepAudit(
        position=position, label=label, comparisons=tuple(comparisons), skipped=skipped, precision=precision_of(step)
    )
    return report, step


def _explanations(run: Traced, departing: Sequence[tuple[int, Step]]) -> Iterator[str]:
    """All hypotheses under which every departing update agrees."""
    if not departing:
        return
    if any(c.what == "advantage" for _, step in departing for c in compare.advantages(step) if not c.agrees):
        yield from _fitting(
            hypotheses.of_advantage(departing[0][1]),
            [step for _, step in departing],
            lambda _, step, hypothesis: compare.advantages(hypothesis.applied(step)),
        )
        return
    steps = [step for _, step in departing]
    theirs = [run.losses(position) for position, _ in departing]

    def losses(index: int, step: Step, hypothesis: Hypothesis) -> list[Comparison]:
        known = theirs[index]
        if known is None:
            return []
        added = 0.0 if hypothesis.added is None else hypothesis.added(step) * run.processes
        return compare.losses(hypothesis.applied(step), known - added, run.processes)

    explanations = list(_fitting(hypotheses.of_loss(steps[0]), steps, losses))
    yield from dict.fromkeys(explanations)
    if not explanations:
        pairs = [c for index, step in enumerate(steps) for c in losses(index, step, AS_SET)]
        factor = constant_factor([c.ours for c in pairs], [c.theirs for c in pairs])
        if factor is not None:
            yield tr("The trainer's losses are {factor:.6g} times ours throughout: another normaliser.").format(
                factor=factor
            )


def _fitting(
    candidates: Iterator[Hypothesis],
    steps: Sequence[Step],
    compared: Callable[[int, Step, Hypothesis], list[Comparison]],
) -> Iterator[str]:
    for hypothesis in candidates:
        try:
            results = [compared(index, step, hypothesis) for index, step in enumerate(steps)]
        except SettingsError:
            continue
        if any(results) and all(c.agrees for result in results for c in result):
            yield hypothesis.sentence


def _slope(step: Step) -> Iterator[float]:
    """Slope of old against new log-probabilities in the first pass, where they were scored apart."""
    used = recompute.used(step, 0)
    new, old = step.logp[0][used].astype(np.float64), step.old_logp[used].astype(np.float64)
    if len(new) > 16 and new.std() > 0 and not np.array_equal(new, old):
        yield float(np.polyfit(new, old, 1)[0])


def _temperature(slopes: Sequence[float]) -> Iterator[str]:
    if slopes and abs(float(np.median(slopes)) - 1) > SLOPE:
        yield tr(
            "Old log-probabilities are {slope:.3f} times the new ones in the first pass: perhaps one of them was taken "
            "at another temperature."
        ).format(slope=float(np.median(slopes)))
