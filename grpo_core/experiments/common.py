"""Common random numbers: the same seeds for several copies of the runs, with each number drawn once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from grpo_core.bandit.layout import runs_first_view, runs_last_view
from grpo_core.bandit.streams import Streams


class CommonStreams(Streams):
    """Random numbers for ``copies`` copies of the same seeds. Each number is drawn once and shared by all copies.

    Copy k of seed s is run k S + s. There are at least two runs.
    """

    def __init__(self, seeds: Sequence[int], copies: int) -> None:
        super().__init__(seeds)
        self._once = Streams(seeds)
        self._count = len(seeds)
        self._copies = max(copies, 2) if len(seeds) == 1 else copies

    @property
    def runs(self) -> int:
        """Number of runs R, including copies."""
        return self._count * self._copies

    def uniforms(self, step: int, count: int) -> np.ndarray:
        """Return the random numbers of all seeds, repeated for every copy."""
        once = runs_last_view(self._once.uniforms(step, count)[: self._count])
        repeated = np.empty((count, self._copies, self._count))
        repeated[:] = once[:, None]
        return runs_first_view(repeated.reshape(count, -1))

    def again(self, step: int, count: int, attempt: int, runs: np.ndarray) -> np.ndarray:
        """Return further random numbers for ``runs``, which draw again."""
        return self._once.again(step, count, attempt, runs % self._count)
