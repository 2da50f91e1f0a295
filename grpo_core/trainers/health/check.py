"""Data types for health checks: what a check requires, how it measures an update, and how it judges a run."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from grpo_core.claims.claim import Claim, told
from grpo_core.config import Settings
from grpo_core.plugins import credited
from grpo_core.text import tr
from grpo_core.trainers.claims.advice import advised
from grpo_core.trainers.claims.findings import Run
from grpo_core.trainers.claims.measured import Measured
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
        more: further data for the judgement.
        evidence: the instances that show the problem most clearly.
    """

    label: int
    value: float
    more: Mapping[str, Any] = field(default_factory=dict)
    evidence: tuple[Evidence, ...] = ()

    @classmethod
    def of(cls, update: Update, value: float, *evidence: Evidence, **more: Any) -> Measure:
        return cls(label=update.label, value=value, more=more, evidence=evidence)


Bad = Callable[[Measure, Measure], bool]
"""Function from the measure of an update, and that of the first update, to whether it is bad."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A judgement that something is wrong. The attributes are described in ``Finding``.

    ``advice`` is empty if that of the :class:`Check` applies.
    """

    what: Sequence[Claim[Run]]
    began: int
    evidence: Sequence[Evidence]
    grade: Grade
    advice: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        grade: Grade,
        those: Sequence[Measure],
        *what: Claim[Run],
        evidence: Sequence[Evidence] | None = None,
        advice: tuple[str, ...] = (),
    ) -> Verdict:
        """Return the judgement that began with the first of ``those`` measures, whose worst are evidence by default."""
        seen = worst(those) if evidence is None else evidence
        return cls(what=what, began=those[0].label, evidence=seen, grade=grade, advice=advice)


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """The name of a measure's value, and whether it is a share."""

    name: str
    share: bool = False


@dataclass(frozen=True, kw_only=True)
class Check:
    """A check for one possible problem of a run.

    Attributes:
        measure: function that measures one update; None if there is nothing to measure. It raises a
            ``NotRecordedError`` that says what the update lacks for the check.
        judge: function from the measures of all updates, in order, to a verdict; None if nothing is wrong.
        quantity: the quantity that ``measure`` returns; None if no single number per update is judged.
        advice: what to change, keys of :data:`.ADVICE`, unless the verdict has its own.
        change: the same as words, for the check of a package.
        missing: function that returns what an update lacks for this check, but not for its measure, as a sentence;
            empty if nothing.
        of_texts: whether it looks for faults of texts, which a completion of a single token cannot have.
        least: minimum number of measured updates for a judgement.
        absent: sentence that says why no update had anything to measure.
        unfit: sentence that says why what was measured in the updates shows nothing.
        across: function that completes the measures of all updates by what only several updates show.
        bad: function that decides whether an update is bad, for a problem that can end.
        least_bad: minimum number of bad updates of such a problem.
        said_by: checks whose finding, if there is one, replaces the finding of this check.
        follows: checks whose finding is the cause of this one and is listed before it.
    """

    title: str
    measure: Callable[[Update], Measure | None]
    judge: Callable[[Sequence[Measure], Settings], Verdict | None]
    quantity: Quantity | None
    source: str
    advice: tuple[str, ...] = ()
    change: str = ""
    missing: Callable[[Update], str] = lambda update: ""
    of_texts: bool = False
    least: int = 1
    absent: str = tr("No update contains what it measures.")
    unfit: str = tr("What was measured is not finite.")
    across: Callable[[Sequence[Measure]], list[Measure]] | None = None
    bad: Bad | None = None
    least_bad: int = 2
    said_by: tuple[str, ...] = ()
    follows: tuple[str, ...] = ()

    def measured(self, measures: Sequence[Measure]) -> Measured | None:
        """Return the claim about the range of the measures. None without values or a single number per update."""
        if self.quantity is None:
            return None
        return Measured.of(self.quantity.name, self.quantity.share, finite(measures))

    def findings(self, name: str, measures: Sequence[Measure], settings: Settings) -> list[Finding]:
        """Judge the measured updates.

        Return the findings of the check, whose key is ``name``: those that have ended, in order, and then the current
        one, if any.
        """
        if not measures:
            return []
        known = [Span(first=0, last=len(measures) - 1, ended=False)]
        if self.bad is not None:
            known = spans([self.bad(m, measures[0]) for m in measures], min(self.least_bad, len(measures)))
        found = (self._finding(name, measures, span, settings) for span in known)
        return [finding for finding in found if finding is not None]

    def _finding(self, name: str, measures: Sequence[Measure], span: Span, settings: Settings) -> Finding | None:
        """Judge the updates up to the last one of a stretch."""
        part = measures[: span.last + 1]
        verdict = self.judge(part, settings)
        if verdict is None:
            return None
        advice = advised(verdict.advice, settings) or advised(self.advice, settings)
        return Finding(
            check=name,
            title=credited(name, self.title),
            grade=Grade.NOTICE if span.ended else verdict.grade,
            what=tuple(verdict.what),
            began=verdict.began,
            last=None if len(part) == len(measures) else part[-1].label,
            ended=span.ended,
            evidence=tuple(verdict.evidence),
            change=told(advice) or self.change,
            advice=advice,
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


@dataclass(frozen=True, kw_only=True)
class Span:
    """A stretch of updates in which a problem lasts.

    Attributes:
        first, last: indices of its first and its last bad update.
        ended: whether enough good updates have followed.
    """

    first: int
    last: int
    ended: bool


def spans(marks: Sequence[bool], least: int) -> list[Span]:
    """Return the stretches in which a problem lasts, in order. Later marks never change one that has ended.

    Each bad update counts one up, each good one down, between 0 and the limit "span_close". A stretch begins when the
    count leaves 0, is reported once it has enough bad updates, and ends when the count is back at 0, so shorter gaps
    do not divide it.

    Args:
        marks: whether each update is bad, in order.
        least: minimum number of bad updates; in a longer run also the share "lasting" of the updates so far, at most
            the limit "span_open".
    """
    found: list[Span] = []
    score = first = last = bad = 0
    reported = False
    for i, mark in enumerate(marks):
        if mark and not score:
            first, bad, reported = i, 0, False
        if mark:
            last, bad = i, bad + 1
            needed = max(least, min(math.ceil(limit("lasting") * (i + 1)), int(limit("span_open"))))
            reported |= bad >= needed
        before, score = score, min(max(score + (1 if mark else -1), 0), int(limit("span_close")))
        if before and not score and reported:
            found.append(Span(first=first, last=last, ended=True))
    return [*found, Span(first=first, last=last, ended=False)] if score and reported else found


def against(name: str, compared: Callable[[float, float], bool] = operator.ge) -> Bad:
    """Return the function that compares the value of a measure with a threshold."""
    return lambda measure, first: compared(measure.value, limit(name))


def lasting(measures: Sequence[Measure], bad: Bad, least: int = 2) -> Sequence[Measure]:
    """Return the measures from the beginning of a problem that has not ended.

    Args:
        least: minimum number of bad updates, as in :func:`spans`; if there are fewer updates, all must be bad.

    Returns:
        The measures from the first bad update of the last of the :func:`spans` to the end of the run; empty if that
        has ended or if there is none.
    """
    found = spans([bad(measure, measures[0]) for measure in measures], min(least, len(measures)))
    return measures[found[-1].first :] if found and not found[-1].ended else []


def share_earned(measures: Sequence[Measure]) -> float | None:
    """Return the mean of ``Update.earned`` over the updates if the task counts as learned, otherwise None."""
    known = [measure.more["earned"] for measure in measures if measure.more["earned"] is not None]
    share = sum(known) / len(known) if known else 0.0
    return share if share >= limit("learned") else None


def mean(measures: Sequence[Measure], name: str = "") -> float:
    """Return the mean of the values of measures, or of their further data ``name``."""
    return float(np.mean([m.more[name] if name else m.value for m in measures]))


def worst(measures: Sequence[Measure]) -> list[Evidence]:
    """Return at most five items of evidence from the measures, starting with one of each."""
    deepest = max((len(measure.evidence) for measure in measures), default=0)
    rounds = [measure.evidence[i] for i in range(deepest) for measure in measures if i < len(measure.evidence)]
    return sorted(rounds[:5], key=lambda e: e.step)
