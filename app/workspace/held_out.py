"""The share of right answers to prompts that a run is never trained on, as far as it was measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.workspace.run_handle import RunHandle

SERIES = "accuracy_greedy"
"""The series that holds it: NaN at updates that did not measure it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class HeldOut:
    """Measurements of one run.

    Attributes:
        steps: (n,) updates before which it was measured, ascending.
        shares: (n,) what was measured, from 0 to 1.
        asked: prompts that were asked; 0 where that is not known.
    """

    steps: np.ndarray
    shares: np.ndarray
    asked: int

    @classmethod
    def of(cls, run: RunHandle, cursor: int) -> HeldOut:
        """The measurements up to update ``cursor``."""
        values = run.series[SERIES].values[:cursor]
        measured = np.flatnonzero(np.isfinite(values))
        task = run.origin.settings.language
        return cls(
            steps=measured + 1, shares=np.asarray(values[measured]), asked=0 if task.problem == "own" else task.held_out
        )

    @property
    def measured_at(self) -> int:
        """The update before which it was measured last. 0 where it has not been."""
        return int(self.steps[-1]) if len(self.steps) else 0

    @property
    def first(self) -> float | None:
        """The share before training, or None."""
        return float(self.shares[0]) if len(self.shares) else None

    @property
    def last(self) -> float | None:
        """The newest share, or None."""
        return float(self.shares[-1]) if len(self.shares) else None
