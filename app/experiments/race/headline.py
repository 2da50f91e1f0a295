"""The result of a race as a sentence of claims: who leads, by how much, since when, and how many seeds failed."""

from __future__ import annotations

from app.experiments.race.results import RaceResults
from grpo_core.claims.claim import sentence


def headline(results: RaceResults) -> str:
    """Return a sentence about the result of a complete race.

    The string is empty before the race is complete, and for fewer than two algorithms.
    """
    return sentence(*results.outcome) if results.complete else ""


def rest(results: RaceResults) -> str:
    """Return a sentence about the algorithms that are still improving at the end of a complete race.

    The string is empty if there are none.
    """
    return sentence(*results.details) if results.complete else ""
