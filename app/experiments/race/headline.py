"""The result of a race as a sentence of claims: who leads, by how much, since when, and how many seeds failed."""

from __future__ import annotations

from app.experiments.race.results import RaceResults
from grpo_core.claims.claim import sentence
from grpo_core.experiments.outcome import by_both, of_fast


def headline(results: RaceResults) -> str:
    """Return a sentence about the result of a complete race, followed by one about JAX if JAX computed it.

    The string is empty before the race is complete, and for fewer than two algorithms computed by NumPy.
    """
    if not results.complete:
        return ""
    return " ".join(filter(None, (sentence(*results.outcome), sentence(*of_fast(by_both(results.lanes.values()))))))


def rest(results: RaceResults) -> str:
    """Return a sentence about the algorithms that are still improving at the end of a complete race.

    The string is empty if there are none.
    """
    return sentence(*results.details) if results.complete else ""
