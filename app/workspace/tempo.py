"""Speed and length of runs, for each kind of policy."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Tempo:
    """The tempo of one kind of run.

    Attributes:
        speed: updates per second; None for as many as possible.
        length: number of updates after which a run stops automatically; None for no limit.
    """

    speed: float | None
    length: int | None


BANDIT, LANGUAGE = Tempo(speed=5.0, length=200), Tempo(speed=2.0, length=150)
"""Defaults. Both kinds solve their tasks within seconds, so they are slowed down until the user wants them faster."""
