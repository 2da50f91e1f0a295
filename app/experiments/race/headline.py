"""Outcome of a race, in one sentence made of claims: who leads, by how much, from when, and how many seeds failed."""

from __future__ import annotations

from app.experiments.race.results import RaceResults
from grpo_core.claims.claim import sentence
from grpo_core.experiments.outcome import by_both, of_fast


def headline(results: RaceResults) -> str:
    """The result of a race that is complete. Empty before, and, where NumPy has computed it, for fewer than two
    algorithms."""
    if not results.complete:
        return ""
    return " ".join(filter(None, (sentence(*results.outcome), sentence(*of_fast(by_both(results.lanes.values()))))))


def rest(results: RaceResults) -> str:
    """Who of a race that is complete had not come to rest. Empty for nobody."""
    return sentence(*results.details) if results.complete else ""
