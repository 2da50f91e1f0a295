"""Stateless random numbers, which depend only on a run's seed and on the number of the update.

A counter-based generator (Philox, Salmon et al. 2011) is keyed by the seed, and its counter is set from the number of
the update. A run therefore draws the same numbers alone and in any batch of runs, a branch continues without a saved
generator state, and equal seeds give common random numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from grpo_core.bandit.layout import runs_first_view, runs_last_view

UPDATES, NUMBERS = 64, 4096
"""Maximum number of updates whose random numbers are generated at once, and maximum count of these numbers per run."""


AT_ONCE = 64
"""Number of runs whose numbers are drawn before they are transposed to runs-last order, small enough for the cache."""


class Streams:
    """The random number streams of R runs, one for each seed.

    A single run is computed together with a duplicate that has the same seed: NumPy adds up the numbers of a single
    run in a different order from those of many runs, and a run's last bits must not depend on the other runs.
    """

    def __init__(self, seeds: Sequence[int]) -> None:
        self.seeds = tuple(seeds) if len(seeds) > 1 else 2 * tuple(seeds)
        self._philox = np.random.Philox(key=0)
        self._draw = np.random.Generator(self._philox)
        # no numbers generated yet; tuples are read in a third of the time of arrays
        self._state: Any = {**self._philox.state, "buffer": (0, 0, 0, 0)}
        self._made = (0, -1)
        self._block = np.empty((0, 0, 0))

    @property
    def runs(self) -> int:
        """R, the number of runs."""
        return len(self.seeds)

    def uniforms(self, step: int, count: int) -> np.ndarray:
        """Return ``count`` numbers in [0, 1) of every run for update ``step`` (1, 2, ...), (R, count).

        The array is reused: it is valid until the next call.
        """
        updates = max(1, min(UPDATES, NUMBERS // count))
        index, place = divmod(step, updates)
        if self._made != (count, index):
            self._made, shape = (count, index), (updates, count, self.runs)
            if self._block.shape != shape:
                self._block = np.empty(shape)  # only once: allocating takes a quarter as long as drawing the numbers
            drawn = np.empty((min(AT_ONCE, self.runs), updates, count))
            for first in range(0, self.runs, AT_ONCE):
                here = drawn[: self.runs - first]
                for run, numbers in enumerate(here, start=first):
                    self._fill(numbers, run, index, 0)
                self._block[..., first : first + AT_ONCE] = runs_last_view(here)
        return runs_first_view(self._block[place])

    def again(self, step: int, count: int, attempt: int, runs: np.ndarray) -> np.ndarray:
        """Return numbers (n, count) for the ``attempt``-th redrawing (1, 2, ...) by ``runs`` (n,), by index."""
        numbers = np.empty((len(runs), count))
        for row, run in enumerate(runs.tolist()):
            self._fill(numbers[row], run, step, attempt)
        return numbers

    def _fill(self, numbers: np.ndarray, run: int, index: int, attempt: int) -> None:
        self._state["state"] = {"counter": (0, index, attempt, 0), "key": (self.seeds[run], 0)}
        self._philox.state = self._state
        self._draw.random(out=numbers)
