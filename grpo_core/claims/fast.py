"""Claims about runs computed by JAX: how far they differ from the same runs computed by NumPy."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from grpo_core.claims.claim import Claim
from grpo_core.text import tr


@dataclass(frozen=True, kw_only=True, eq=False)
class ByBoth:
    """The measures of some runs, computed by JAX and by NumPy.

    Attributes:
        fast, numpy: the same measures of the same runs in the same order, (U + 1, n) each.
        checked: number of these runs.
        runs: number of all runs computed by JAX.
    """

    fast: tuple[np.ndarray, ...]
    numpy: tuple[np.ndarray, ...]
    checked: int
    runs: int

    @property
    def apart(self) -> float:
        """The largest difference between the two. Infinite if only one of two values is finite."""
        return max((_apart(a, b) for a, b in zip(self.fast, self.numpy, strict=True)), default=0.0)


def _apart(one: np.ndarray, other: np.ndarray) -> float:
    known = np.isfinite(one)
    if not (known == np.isfinite(other)).all():
        return math.inf
    return float(np.abs(one[known] - other[known]).max(initial=0.0))


@dataclass(frozen=True, kw_only=True)
class Rounded(Claim[ByBoth]):
    """Claims that ``checked`` of ``runs`` runs computed by JAX were repeated with NumPy, with differences up to
    ``apart``.
    """

    runs: int
    checked: int
    apart: float

    def check(self, data: ByBoth) -> bool:
        return (self.runs, self.checked, self.apart) == (data.runs, data.checked, data.apart)

    def words(self) -> str:
        if math.isinf(self.apart):
            return tr(
                "Computed with JAX; of {runs:,} runs, {checked} were also trained with NumPy, and one diverged with "
                "only one of the two: turn the fast path off"
            ).format(runs=self.runs, checked=self.checked)
        return tr(
            "Computed with JAX; of {runs:,} runs, {checked} were also trained with NumPy, and their measures differ "
            "by at most {apart:.1e}"
        ).format(runs=self.runs, checked=self.checked, apart=self.apart)


@dataclass(frozen=True, kw_only=True)
class Reopened(Claim[ByBoth]):
    """Claims that the run, which was computed by JAX, was repeated with NumPy, with differences up to ``apart``."""

    apart: float

    def check(self, data: ByBoth) -> bool:
        return data.checked == 1 and self.apart == data.apart

    def words(self) -> str:
        if math.isinf(self.apart):
            return tr("The run itself is from NumPy, and it diverged while the one from JAX did not, or the reverse")
        return tr("The run itself is from NumPy; its measures differ from those of JAX by at most {apart:.1e}").format(
            apart=self.apart
        )
