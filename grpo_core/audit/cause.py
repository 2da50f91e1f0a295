"""A cause as an audit says it: the cause, since when, how sure that is, and what to change."""

from __future__ import annotations

from dataclasses import dataclass

from grpo_core.claims.cause_words import CAUSES
from grpo_core.claims.causes import Done, Explained, Misplaced
from grpo_core.text import tr

NAMED, POSSIBLE, SUSPECTED = "named", "possible", "suspected"
"""It explains all numbers to rounding and nothing as simple does; it is one of several that do; the record hints at it
while the loss agrees."""


@dataclass(frozen=True, kw_only=True)
class Cause:
    """One cause, or a class of causes that this run cannot tell apart.

    Attributes:
        grade: "named", "possible" or "suspected".
        claims: what is claimed; of a class each alike, the simplest first.
        since: the trainer's step of the first update that shows it; None where it is there from the start.
        until: that of the last one; None where it is there to the end.
        residual: largest difference that is left, measured by what rounding allows; None where none is measured.
    """

    grade: str
    claims: tuple[Explained | Misplaced, ...]
    since: int | None = None
    until: int | None = None
    residual: float | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of what was done, those of a class one after the other."""
        return tuple(dict.fromkeys(done.cause for claim in self.claims for done in _done(claim)))

    @property
    def sentences(self) -> tuple[str, ...]:
        """The deeds in words: one sentence for each of a class."""
        return tuple(dict.fromkeys(claim.words() for claim in self.claims))

    @property
    def instead(self) -> str:
        """The consequence: what the run learned instead."""
        return _of_first(self, "instead")

    @property
    def remedy(self) -> str:
        """The setting, or the line of the trainer's script, that would put it right."""
        return _of_first(self, "remedy")

    @property
    def when(self) -> str:
        """Since when, as a sentence. Empty where it is there throughout."""
        if self.since is None and self.until is None:
            return ""
        if self.until is None:
            return tr("From step {since} on.").format(since=self.since)
        if self.since is None:
            return tr("Up to step {until}.").format(until=self.until)
        return tr("From step {since} to step {until}.").format(since=self.since, until=self.until)


def _done(claim: Explained | Misplaced) -> tuple[Done, ...]:
    return claim.done if isinstance(claim, Explained) else (claim.done,)


def _of_first(cause: Cause, field: str) -> str:
    those = _done(cause.claims[0])
    return " ".join(dict.fromkeys(done.sentence(getattr(CAUSES[done.cause], field)) for done in those))
