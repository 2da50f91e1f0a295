"""Data types for a diagnosis: findings with their evidence, checks that were not possible, and links of the chain."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from grpo_core.claims.claim import Claim, told
from grpo_core.text import plural, tr
from grpo_core.trainers.claims.findings import Run
from grpo_core.trainers.claims.measured import Measured
from grpo_core.trainers.health.grade import Grade

SHORT = 9
"""Minimum number of updates for comparing thirds of a run."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """One instance of a problem in the run.

    Attributes:
        step: the trainer's number for the update.
        what: a sentence, or a number with its name.
        row: the completion, counted from 1; None for the update as a whole.
        token: the token of the completion, counted from 1; None for the completion as a whole.
        quote: the completion's text, shortened; empty if none is recorded or needed.
    """

    step: int
    what: str
    row: int | None = None
    token: int | None = None
    quote: str = ""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A problem of a run, with its evidence.

    Attributes:
        check: name of the check, a key of ``CHECKS``.
        began: the trainer's number for the update in which the problem began.
        last: the trainer's number for the last update with the problem; None if it is the last one measured. The
            claims are about the run up to this update.
        advice: the claims that ``change`` consists of; empty if a package's check gave words alone.
        change: advice on what to change, as words.
        course: the check's measurements over the run, (trainer's number, value) each, in order; for a long run the
            largest value of each section.
    """

    check: str
    title: str
    grade: Grade
    what: tuple[Claim[Run], ...]
    began: int
    evidence: tuple[Evidence, ...]
    change: str
    source: str
    course: tuple[tuple[int, float], ...] = ()
    last: int | None = None
    ended: bool = False
    advice: tuple[Claim[Run], ...] = ()

    def __post_init__(self) -> None:
        assert self.what and all(isinstance(claim, Claim) for claim in self.what), "a finding is made of claims"
        object.__setattr__(self, "grade", Grade(self.grade))  # from another process it arrives as a string

    @property
    def sentence(self) -> str:
        said = told(self.what)
        if self.last is None:
            return said
        return tr("{said} These are the numbers of the run up to step {last}.").format(said=said, last=self.last)

    @property
    def when(self) -> str:
        if self.last is None:
            return tr("from step {began}").format(began=self.began)
        return tr("step {began} to {last}").format(began=self.began, last=self.last)


@dataclass(frozen=True, kw_only=True)
class Healthy:
    """A check that found nothing.

    Attributes:
        measured: claim about the range of its measure; None if the check does not judge a single number per update, or
            if that number led to another check's finding.
    """

    check: str
    title: str
    measured: Measured | None = None


@dataclass(frozen=True, kw_only=True)
class NotLookedAt:
    """A check for which the source lacks data.

    Attributes:
        why: what is missing, as a sentence.
    """

    check: str
    title: str
    why: str


class State(StrEnum):
    """State of a link, as far as the record shows it."""

    HOLDS = "holds"
    BREAKS = "breaks"
    NOT_SHOWN = "not shown"
    HIDDEN = "cannot be seen"

    @property
    def word(self) -> str:
        return {
            State.HOLDS: tr("holds"),
            State.BREAKS: tr("breaks"),
            State.NOT_SHOWN: tr("not shown"),
            State.HIDDEN: tr("cannot be seen"),
        }[self]


@dataclass(frozen=True, kw_only=True)
class Link:
    """A link of the chain, as shown by a run.

    Attributes:
        name: name of the link, as in ``CHAIN``.
        what: the figures, as claims about the run or about the course of a measure.
        why: a sentence on what is missing; empty if nothing is.
        check: the check whose finding says that it breaks; empty if it does not.
        began, last: the trainer's numbers for the first and the last update in which it breaks; None if it does not,
            or if it still breaks at the end.
    """

    name: str
    title: str
    state: State
    what: tuple[Claim[Any], ...] = ()
    why: str = ""
    check: str = ""
    began: int | None = None
    last: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "state", State(self.state))  # from another process it arrives as a string

    @property
    def line(self) -> str:
        state = self.state.word
        if self.began is not None:
            state = (
                tr("breaks from step {began} on").format(began=self.began)
                if self.last is None
                else tr("breaks from step {began} to {last}").format(began=self.began, last=self.last)
            )
        facts = {"title": self.title, "state": state, "said": told(self.what)}
        if self.what and isinstance(self.what[0], Measured):
            return tr("{title}: {state} ({said}).").format(**facts)
        line = tr("{title}: {state}. {said}").format(**facts)
        return " ".join(filter(None, (line.strip(), self.why)))


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """The complete diagnosis of a run.

    Attributes:
        chain: the links from a reward to a better policy, in order.
        findings: the findings, worst first, and causes before their effects.
        ended: the findings that are over, in the order of the checks. They count as notices.
        unreadable: messages about updates that could not be read.
    """

    updates: int
    chain: tuple[Link, ...] = ()
    findings: tuple[Finding, ...] = ()
    not_looked_at: tuple[NotLookedAt, ...] = ()
    looked_at: tuple[Healthy, ...] = ()
    ended: tuple[Finding, ...] = ()
    unreadable: tuple[str, ...] = field(default=())

    @property
    def serious(self) -> bool:
        return any(finding.grade is Grade.SERIOUS for finding in self.findings)

    @property
    def reasons(self) -> dict[str, list[str]]:
        """The titles of the checks for which the source lacks data, by what is missing."""
        found: dict[str, list[str]] = {}
        for one in self.not_looked_at:
            found.setdefault(one.why, []).append(one.title)
        return found

    @property
    def caution(self) -> str:
        """Warning that a run of so few updates proves little. Empty if the run is long enough."""
        if not 0 < self.updates < SHORT:
            return ""
        return plural(
            "A run of {updates} update proves little: problems that develop slowly are judged from {least} updates "
            "on, and finding nothing in so few does not prove that the run is healthy.",
            "A run of {updates} updates proves little: problems that develop slowly are judged from {least} updates "
            "on, and finding nothing in so few does not prove that the run is healthy.",
            self.updates,
        ).format(updates=self.updates, least=SHORT)
