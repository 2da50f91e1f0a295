"""What a diagnosis says: findings with their evidence, and what could not be looked at."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from grpo_core.claims.claim import Claim, told
from grpo_core.claims.findings import Run

Severity = Literal["serious", "warning", "notice"]
RANKS: dict[Severity, int] = {"serious": 0, "warning": 1, "notice": 2}
"""The grades of a finding, the worst first."""


LONG_ENOUGH = 9
"""Updates from which every check over time can find something: three in each third of the run."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """One place in the run where a finding can be seen.

    Attributes:
        step: the trainer's number of the update.
        what: a sentence or a number with its name.
        row: of the completion, from 1; None where it is about the whole update.
        token: of the completion, from 1; None where it is about the whole completion.
        quote: the completion's text, shortened; empty where none is recorded or needed.
    """

    step: int
    what: str
    row: int | None = None
    token: int | None = None
    quote: str = ""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A thing that is wrong with a run, with its evidence.

    Attributes:
        check: name of the check, a key of ``CHECKS``.
        title: the check's title.
        severity: "serious" where training cannot work like this, "warning" where it works worse than it could, "notice"
            where it is worth knowing and may be meant.
        what: the claims that are what was seen, one or more; nothing else says it.
        began: the trainer's number of the update in which it began.
        evidence: where it can be seen.
        course: what the check measured over the run, (trainer's number, value) each, in order; of a long run the
            largest value of each stretch.
        change: what to change.
        source: where this is described.
    """

    check: str
    title: str
    severity: Severity
    what: tuple[Claim[Run], ...]
    began: int
    evidence: tuple[Evidence, ...]
    change: str
    source: str
    course: tuple[tuple[int, float], ...] = ()

    def __post_init__(self) -> None:
        assert self.what and all(isinstance(claim, Claim) for claim in self.what), "a finding is made of claims"

    @property
    def sentence(self) -> str:
        """The claims, in sentences with numbers."""
        return told(self.what)


@dataclass(frozen=True, kw_only=True)
class NotLookedAt:
    """A check that the source has no numbers for.

    Attributes:
        check: its name.
        title: its title.
        why: what is missing, in a sentence.
    """

    check: str
    title: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """All that was found out about a run.

    Attributes:
        updates: how many were looked at.
        findings: the worst first; of one grade, causes before what follows from them.
        not_looked_at: checks that the source has no numbers for.
        looked_at: titles of the checks that found nothing.
        unreadable: sentences on updates that could not be read.
    """

    updates: int
    findings: tuple[Finding, ...] = ()
    not_looked_at: tuple[NotLookedAt, ...] = ()
    looked_at: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = field(default=())

    @property
    def short(self) -> bool:
        """Whether the run has too few updates for what is seen over time."""
        return 0 < self.updates < LONG_ENOUGH

    @property
    def serious(self) -> bool:
        """Whether something serious was found."""
        return any(finding.severity == "serious" for finding in self.findings)
