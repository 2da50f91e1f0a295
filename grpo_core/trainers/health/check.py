"""Data types for health checks: what a check requires, how it measures an update, and how it judges a run."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from grpo_core.claims.claim import Claim
from grpo_core.config import Settings
from grpo_core.plugins import credited
from grpo_core.text import tr
from grpo_core.trainers.claims.findings import Run
from grpo_core.trainers.health.finding import Evidence, Finding
from grpo_core.trainers.health.grade import Grade
from grpo_core.trainers.health.limits import limit
from grpo_core.trainers.health.update import Update

STRETCHES = 400
"""Number of sections into which a long run is divided."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Measure:
    """The measurement of one update by a check. It is small, because it is kept for all updates of a run.

    Attributes:
        label: the trainer's number for the update.
        value: the number that is judged.
        more: further data for the judgement.
        evidence: the instances that show the problem most clearly.
    """

    label: int
    value: float
    more: Mapping[str, Any] = field(default_factory=dict)
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A judgement that something is wrong. The attributes are described in ``Finding``.

    ``change`` is empty if the advice of the :class:`Check` applies.
    """

    what: Sequence[Claim[Run]]
    began: int
    evidence: Sequence[Evidence]
    grade: Grade
    change: str = ""


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """The name of a measure's value, and whether it is a share."""

    name: str
    share: bool = False


@dataclass(frozen=True, kw_only=True)
class Check:
    """A check for one possible problem of a run.

    Attributes:
        title: the displayed title.
        missing: function that returns a sentence about what an update lacks for the check; empty if nothing.
        measure: function that measures one update; None if there is nothing to measure.
        judge: function from the measures of all updates, in order, to a verdict; None if nothing is wrong.
        quantity: the quantity that ``measure`` returns; None if no single number per update is judged.
        change: advice on what to change, unless the verdict has its own.
        source: where this problem is described.
        of_texts: whether it looks for faults of texts, which a completion of a single token cannot have.
        least: minimum number of measured updates for a judgement.
        said_by: checks whose finding, if there is one, replaces the finding of this check.
        follows: checks whose finding is the cause of this one and is listed before it.
    """

    title: str
    missing: Callable[[Update], str]
    measure: Callable[[Update], Measure | None]
    judge: Callable[[Sequence[Measure], Settings], Verdict | None]
    quantity: Quantity | None
    change: str
    source: str
    of_texts: bool = False
    least: int = 1
    said_by: tuple[str, ...] = ()
    follows: tuple[str, ...] = ()

    def not_measurable(self, update: Update) -> str:
        """Return why the update cannot be measured. Empty if it can."""
        if self.of_texts and update.one_token:
            return tr("Every completion is a single token.")
        return self.missing(update)

    def finding(self, name: str, measures: Sequence[Measure], settings: Settings) -> Finding | None:
        """Judge the measured updates.

        Return the finding of the check, whose key is ``name``, or None if nothing is wrong.
        """
        verdict = self.judge(measures, settings) if measures else None
        if verdict is None:
            return None
        return Finding(
            check=name,
            title=credited(name, self.title),
            grade=verdict.grade,
            what=tuple(verdict.what),
            began=verdict.began,
            evidence=tuple(verdict.evidence),
            change=verdict.change or self.change,
            source=self.source,
            course=course(measures),
        )


def finite(measures: Sequence[Measure]) -> list[tuple[int, float]]:
    """Return the trainer's number and the value of each update with a finite value."""
    return [(measure.label, float(measure.value)) for measure in measures if math.isfinite(measure.value)]


def course(measures: Sequence[Measure]) -> tuple[tuple[int, float], ...]:
    """Return the trainer's number and the measured value of each update.

    If there are many updates, return only the largest value of each section.
    """
    known = finite(measures)
    stretches = min(len(known), STRETCHES)
    ends = [round(i * len(known) / stretches) for i in range(stretches + 1)] if stretches else []
    return tuple(max(known[a:b], key=lambda one: one[1]) for a, b in pairwise(ends))


def lasting(measures: Sequence[Measure], bad: Callable[[Measure], bool], least: int) -> Sequence[Measure]:
    """Return the measures from the beginning of a lasting problem onwards.

    From then on, at least half of the updates are bad.

    Args:
        measures: measures of the updates, in order.
        bad: function that returns whether an update is bad.
        least: minimum number of bad updates; in a long run also at least the share "lasting" of all.

    Returns:
        The measures from the beginning of the problem to the end of the run; empty if no problem lasts.
    """
    marks = [bad(measure) for measure in measures]
    needed = max(least, math.ceil(limit("lasting") * len(measures)))
    for i, mark in enumerate(marks):
        count = sum(marks[i:])
        if mark and count >= needed and 2 * count >= len(marks) - i:
            return measures[i:]
    return []


def share_earned(measures: Sequence[Measure]) -> float | None:
    """Return the mean of ``Update.earned`` over the updates if the task counts as learned, otherwise None."""
    known = [measure.more["earned"] for measure in measures if measure.more["earned"] is not None]
    share = sum(known) / len(known) if known else 0.0
    return share if share >= limit("learned") else None


def worst(measures: Sequence[Measure], most: int = 5) -> list[Evidence]:
    """Return at most ``most`` items of evidence from the measures, starting with one of each."""
    deepest = max((len(measure.evidence) for measure in measures), default=0)
    rounds = [measure.evidence[i] for i in range(deepest) for measure in measures if i < len(measure.evidence)]
    return sorted(rounds[:most], key=lambda e: e.step)
