"""The form of a check: what it needs, what it measures of each update, and how the measures of a run are judged."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from grpo_core.claims.claim import Claim
from grpo_core.claims.findings import Run
from grpo_core.config import Settings
from grpo_core.health.finding import Evidence, Finding
from grpo_core.health.grade import Grade
from grpo_core.health.limits import limit
from grpo_core.health.update import Update

STRETCHES = 400
"""Parts into which the course of a long run is divided."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Measure:
    """The measurement that a check made of one update: small, for it is kept for all updates of a run.

    Attributes:
        label: the trainer's number of the update.
        value: the number that is judged.
        more: whatever else the judgement needs.
        evidence: the worst places.
    """

    label: int
    value: float
    more: Mapping[str, Any] = field(default_factory=dict)
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A judgement that something is wrong. ``Finding`` says what the attributes mean.

    ``change`` is empty where the check's own advice fits every run.
    """

    what: Sequence[Claim[Run]]
    began: int
    evidence: Sequence[Evidence]
    grade: Grade
    change: str = ""


@dataclass(frozen=True, kw_only=True)
class Check:
    """One thing that can be wrong with a run.

    Attributes:
        title: what it is called, as a user reads it.
        missing: what an update lacks for the check, as a sentence; empty where it lacks nothing.
        measure: the number of one update; None where there is nothing to measure.
        judge: what is wrong, from the measures of all updates in order; None where nothing is.
        change: what to change, where the judgement does not say it by the settings of the run.
        source: where this is described.
        least: updates with a measure from which it is judged.
        said_by: checks whose finding says this one too, which is then left out.
        follows: checks whose finding is the cause of this one, and is placed before it.
    """

    title: str
    missing: Callable[[Update], str]
    measure: Callable[[Update], Measure | None]
    judge: Callable[[Sequence[Measure], Settings], Verdict | None]
    change: str
    source: str
    least: int = 1
    said_by: tuple[str, ...] = ()
    follows: tuple[str, ...] = ()

    def finding(self, name: str, measures: Sequence[Measure], settings: Settings) -> Finding | None:
        """The finding of the check called ``name``, None where nothing is wrong."""
        verdict = self.judge(measures, settings) if measures else None
        if verdict is None:
            return None
        return Finding(
            check=name, title=self.title, grade=verdict.grade, what=tuple(verdict.what), began=verdict.began,
            evidence=tuple(verdict.evidence), change=verdict.change or self.change, source=self.source,
            course=course(measures),
        )  # fmt: skip


def finite(measures: Sequence[Measure]) -> list[tuple[int, float]]:
    """The trainer's number and the value of each update whose value is finite."""
    return [(measure.label, float(measure.value)) for measure in measures if math.isfinite(measure.value)]


def course(measures: Sequence[Measure]) -> tuple[tuple[int, float], ...]:
    """The measured values with the trainer's numbers of their updates. Of many updates, the largest of each stretch."""
    known = finite(measures)
    stretches = min(len(known), STRETCHES)
    ends = [round(i * len(known) / stretches) for i in range(stretches + 1)] if stretches else []
    return tuple(max(known[a:b], key=lambda one: one[1]) for a, b in pairwise(ends))


def lasting(measures: Sequence[Measure], bad: Callable[[Measure], bool], least: int) -> Sequence[Measure]:
    """The updates since something began that lasts: from then on at least half of the updates are bad.

    Args:
        measures: of the updates, in order.
        bad: whether an update is.
        least: bad updates that there must be; of a long run at least the limit "lasting" of all.

    Returns:
        The measures from the beginning to the end of the run; empty where nothing lasts.
    """
    marks = [bad(measure) for measure in measures]
    needed = max(least, math.ceil(limit("lasting") * len(measures)))
    for i, mark in enumerate(marks):
        count = sum(marks[i:])
        if mark and count >= needed and 2 * count >= len(marks) - i:
            return measures[i:]
    return []


def worst(measures: Sequence[Measure], most: int = 5) -> list[Evidence]:
    """The evidence of the measures, one place of each first, at most ``most``."""
    deepest = max((len(measure.evidence) for measure in measures), default=0)
    rounds = [measure.evidence[i] for i in range(deepest) for measure in measures if i < len(measure.evidence)]
    return sorted(rounds[:most], key=lambda e: e.step)
