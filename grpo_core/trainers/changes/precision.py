"""Precision of log-probabilities in a file, and its effect on the recomputed loss.

A file may hold fewer digits than the trainer computed with, for example float16 instead of float32, or four decimals.
The loss recomputed from it then differs by the effect of this rounding. Since the direction of each rounding is
unknown, random ones are sampled: every stored number is moved by half a unit in its last place, up or down, and the
training function computes the loss again.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from grpo_core import recompute
from grpo_core.record import Step
from grpo_core.text import plural, tr

ROUNDED = ("logp", "old_logp", "ref_logp", "entropy", "advantage", "gate")
"""Fields of an update from which the loss is computed and which a file may store rounded."""
DECIMALS = (3, 4, 5)
"""Numbers of decimals that are recognised.

With fewer, losses cannot be compared; with more, numbers are like float32.
"""
FIRST, ENOUGH = 4096, 8
"""Number of values that are checked first, and minimum number of distinct values for determining their digits."""
DRAWS, TIMES = 8, 4
"""Number of random rounding directions that are sampled, and the allowed multiple of their root mean square."""


@dataclass(frozen=True, kw_only=True)
class Precision:
    """The number of digits to which a file stores numbers.

    Attributes:
        decimals: number of decimals; None for float16.
    """

    decimals: int | None = None

    @property
    def name(self) -> str:
        if self.decimals is None:
            return tr("float16")
        return plural("{count} decimal", "{count} decimals", self.decimals).format(count=self.decimals)

    @property
    def relative(self) -> float:
        """Relative error of a sum computed in this precision. 0 if only the stored numbers were rounded."""
        return 2.0**-11 if self.decimals is None else 0.0

    def half_unit(self, values: np.ndarray | float) -> np.ndarray:
        """Return an upper bound of each value's rounding error, in the shape of ``values``.

        0 for values that are not finite.
        """
        if self.decimals is not None:
            return np.where(np.isfinite(values), 0.5 * 10.0**-self.decimals, 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            unit = np.spacing(np.abs(np.asarray(values, np.float16))).astype(np.float64)
        return np.where(np.isfinite(unit), unit / 2, 0.0)

    def holds(self, values: np.ndarray) -> bool:
        """Return whether all ``values`` are exactly representable in this precision."""
        single = np.asarray(values[np.isfinite(values)], np.float32)
        with np.errstate(over="ignore"):
            kept = (
                single.astype(np.float16).astype(np.float32)
                if self.decimals is None
                else np.round(single.astype(np.float64), self.decimals).astype(np.float32)
            )
        return bool(np.array_equal(single, kept))


FLOAT16 = Precision()


def in_bfloat16(step: Step) -> bool:
    """Return whether every recorded log-probability is a bfloat16 number, which means that the trainer computed in
    bfloat16.
    """
    values = step.logp[np.isfinite(step.logp)].astype(np.float32)
    return bool(values.size and not (values.view(np.uint32) & 0xFFFF).any() and np.unique(values).size > 1)


def precision_of(step: Step) -> Precision | None:
    """Return the precision of an update's log-probabilities in the file.

    None for float32, and for bfloat16 if the trainer computed in it (:func:`in_bfloat16`).
    """
    if in_bfloat16(step):
        return None
    values = np.concatenate([step.logp[:, step.mask].ravel(), step.old_logp[step.mask]])
    values = values[np.isfinite(values) & (values != 0)]
    if np.unique(values[:FIRST]).size < ENOUGH:
        return None
    candidates = (*(Precision(decimals=count) for count in DECIMALS), FLOAT16)
    return next((p for p in candidates if p.holds(values[:FIRST]) and p.holds(values)), None)


def moved_by_rounding(step: Step, passed: int, precision: Precision) -> np.ndarray:
    """Return the effect of the file's rounding on each micro-batch's loss of a pass, (M,)."""
    generator = np.random.default_rng(0)
    losses = recompute.part_losses(step, passed)
    squares = np.zeros_like(losses)
    for _ in range(DRAWS):
        changed = {}
        for name in ROUNDED:
            values = getattr(step, name)
            if values is not None and precision.holds(values):
                signs = generator.choice((-1.0, 1.0), values.shape)
                changed[name] = values + signs * precision.half_unit(values)
        squares += (recompute.part_losses(dataclasses.replace(step, **changed), passed) - losses) ** 2
    return np.asarray(TIMES * np.sqrt(squares / DRAWS))
