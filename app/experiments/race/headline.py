"""The result of a race in two lines of claims: who is faster, and who ends higher, and how many seeds failed."""

from __future__ import annotations

from app.experiments.race.results import RaceResults
from grpo_core.claims.claim import sentence
from grpo_core.experiments.outcome import by_both, of_fast, speed
from grpo_core.text import tr


def headline(results: RaceResults) -> str:
    """Return a line on which algorithm of a complete race is faster, one on which ends higher, and one on JAX.

    A line that cannot be told is left out; all are before the race is complete.
    """
    if not results.complete:
        return ""
    faster, higher = sentence(*speed(results.trained)), sentence(*results.outcome)
    lines = (
        faster and tr("Which is faster? {sentence}").format(sentence=faster),
        higher and tr("Which ends higher? {sentence}").format(sentence=higher),
        sentence(*of_fast(by_both(results.lanes.values()))),
    )
    return "\n".join(filter(None, lines))


def rest(results: RaceResults) -> str:
    """Return a sentence about the algorithms that are still improving at the end of a complete race.

    The string is empty if there are none.
    """
    return sentence(*results.details) if results.complete else ""
