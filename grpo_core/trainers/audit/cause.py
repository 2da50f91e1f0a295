"""A cause found by an audit: what was done, since when, how certain that is, and how to correct it."""

from __future__ import annotations

from dataclasses import dataclass

from grpo_core.claims.claim import told
from grpo_core.text import tr
from grpo_core.trainers.claims.causes import Explained, Misplaced, Remedy, done_in
from grpo_core.trainers.claims.effects import Effect

NAMED, POSSIBLE, SUSPECTED = "named", "possible", "suspected"
"""Grades of a cause.

In order: it explains all numbers up to rounding, and no other equally simple cause does; it is one of several equally
simple causes that do; the record suggests it although the loss agrees.
"""


@dataclass(frozen=True, kw_only=True)
class Cause:
    """One cause, or a class of causes that this run cannot distinguish.

    Attributes:
        grade: "named", "possible" or "suspected".
        claims: the claims, one for each cause of the class, the simplest first.
        since: the trainer's number for the first affected update; None if that is the first update of the run.
        until: the trainer's number for the last affected update; None if that is the last update of the run.
        residual: largest remaining difference, relative to the rounding tolerance; None if not measured.
        effects: the claims about the pushes on tokens under the first cause of the class.
    """

    grade: str
    claims: tuple[Explained | Misplaced, ...]
    since: int | None = None
    until: int | None = None
    residual: float | None = None
    effects: tuple[Effect, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the causes of the class."""
        return tuple(dict.fromkeys(done.cause for claim in self.claims for done in done_in(claim)))

    @property
    def sentences(self) -> tuple[str, ...]:
        """Sentences about what was done, one for each cause of the class."""
        return tuple(dict.fromkeys(claim.words() for claim in self.claims))

    @property
    def effect(self) -> str:
        """Sentences about the pushes on tokens under the cause. Empty if they cannot be computed."""
        return told(self.effects)

    @property
    def remedy(self) -> str:
        """Sentence about the setting, or the line of the trainer's script, that would correct the cause."""
        return Remedy(cause=self.claims[0]).words()

    @property
    def when(self) -> str:
        """Sentence about the updates that the cause affects. Empty if it affects all."""
        if self.since is None and self.until is None:
            return ""
        if self.until is None:
            return tr("From step {since} on.").format(since=self.since)
        if self.since is None:
            return tr("Up to step {until}.").format(until=self.until)
        return tr("From step {since} to step {until}.").format(since=self.since, until=self.until)
