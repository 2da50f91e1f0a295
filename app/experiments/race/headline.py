"""The result of a race in two lines of claims: who is faster, and who ends higher, and how many seeds failed."""

from __future__ import annotations

from app.experiments.race.results import RaceResults
from grpo_core.claims.claim import sentence
from grpo_core.experiments.outcome import speed
from grpo_core.text import tr


def headline(results: RaceResults) -> str:
    """Return a line on which algorithm of a complete race is faster, and one on which ends higher.

    A line that cannot be told is left out; both are before the race is complete.
    """
    if not results.complete:
        return ""
    faster, higher = sentence(*speed(results.trained)), sentence(*results.outcome)
    lines = (
        faster and tr("Which is faster? {sentence}").format(sentence=faster),
        higher and tr("Which ends higher? {sentence}").format(sentence=higher),
    )
    return "\n".join(filter(None, lines))


def rest(results: RaceResults) -> str:
    """Return a sentence about the algorithms that are still improving at the end of a complete race.

    The string is empty if there are none.
    """
    return sentence(*results.details) if results.complete else ""
