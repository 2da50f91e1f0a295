"""Shares of right answers over a run, on held-out prompts and among the sampled completions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.workspace.run_handle import RunHandle
from grpo_core.texts import question_text

GREEDY, SAMPLED = "accuracy_greedy", "accuracy"
"""Names of two series: answers to held-out prompts (NaN at updates without a measurement), and sampled completions."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RightShare:
    """Measurements of the share of right answers in one run.

    Attributes:
        steps: (n,) updates with a measurement, ascending.
        shares: (n,) the measured share, from 0 to 1.
        asked: number of answers judged per measurement; 0 if unknown.
    """

    steps: np.ndarray
    shares: np.ndarray
    asked: int

    @classmethod
    def held_out(cls, run: RunHandle, cursor: int) -> RightShare | None:
        """Return the share of correct likeliest answers to held-out prompts before the updates up to ``cursor``.

        None if the prompts are the user's own and the run is trained on the watched ones, because then none is
        held out.
        """
        task = run.origin.settings.language
        own = task.problem == "own"
        return None if own and _trained_on(run) else cls._of(run, cursor, GREEDY, 0 if own else task.held_out)

    @classmethod
    def sampled(cls, run: RunHandle, cursor: int, completions: int) -> RightShare:
        """Return the share of correct sampled completions in each update up to ``cursor``.

        ``completions`` is the number of completions in that update (0 if unknown).
        """
        return cls._of(run, cursor, SAMPLED, completions)

    @classmethod
    def _of(cls, run: RunHandle, cursor: int, series: str, asked: int) -> RightShare:
        values = run.series[series].values[:cursor]
        measured = np.flatnonzero(np.isfinite(values))
        return cls(steps=measured + 1, shares=np.asarray(values[measured]), asked=asked)

    @property
    def measured_at(self) -> int:
        return int(self.steps[-1]) if len(self.steps) else 0

    @property
    def first(self) -> float | None:
        return float(self.shares[0]) if len(self.shares) else None

    @property
    def last(self) -> float | None:
        return float(self.shares[-1]) if len(self.shares) else None

    @property
    def right(self) -> int:
        """Number of right answers in the newest measurement, or 0 if there is none."""
        return round((self.last or 0.0) * self.asked)


def _trained_on(run: RunHandle) -> bool:
    """Return whether the first update was trained on a watched prompt."""
    step = run.step(1) if run.head else None
    if step is None or step.prompt_tokens is None:
        return False
    asked = (question_text(step, group, run.origin) for group in range(len(step.prompt_tokens)))
    return any(question in run.origin.watched for question in asked)
