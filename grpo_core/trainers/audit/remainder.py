"""Description of the pattern of unexplained deviations: a factor, a difference, individual completions, noise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from grpo_core.text import plural, tr
from grpo_core.trainers.audit.compare import Comparison

CONSTANT = 1e-3
"""Relative spread below which a quantity counts as constant."""
FEWEST = 6
"""Minimum number of values for naming a pattern."""


def shape(compared: Sequence[Comparison]) -> str:
    """Describe the common pattern of the deviating numbers in ``compared`` in a sentence. Empty if none deviates."""
    departing = [c for c in compared if not c.agrees and np.isfinite(c.difference)]
    if not departing:
        return ""
    ours, theirs = (np.array([getattr(c, side) for c in departing]) for side in ("ours", "theirs"))
    off = theirs - ours
    size = plural(
        "{count} of {all} number departs, typically by {typical:.3g} and at most by {largest:.3g}",
        "{count} of {all} numbers depart, typically by {typical:.3g} and at most by {largest:.3g}",
        len(compared),
    ).format(
        count=len(departing), all=len(compared), typical=float(np.median(np.abs(off))), largest=float(np.abs(off).max())
    )
    return tr("{size}: {shape}.").format(size=size, shape=_common(departing, compared, ours, off))


def _common(departing: Sequence[Comparison], compared: Sequence[Comparison], ours: np.ndarray, off: np.ndarray) -> str:
    if len(departing) < FEWEST:
        return tr("too few to see a pattern")
    if (np.abs(ours) > 1e-9).all():
        factors = 1 + off / ours
        middle = float(np.median(factors))
        if np.abs(factors - middle).max() < CONSTANT * max(abs(middle), 1e-9):
            return tr("all by one factor, {factor:.6g}").format(factor=middle)
    middle = float(np.median(off))
    if np.abs(off - middle).max() < CONSTANT * abs(middle):
        return tr("all by one amount, {amount:+.6g}").format(amount=middle)
    rows = {c.row for c in departing if c.row is not None}
    every = {c.row for c in compared if c.row is not None}
    if rows and len(rows) <= max(1, len(every) // 4):
        named = ", ".join(str(row + 1) for row in sorted(rows))
        return tr("always in the same completions ({rows})").format(rows=named)
    error = float(off.std(ddof=1)) / np.sqrt(len(off))
    if abs(float(off.mean())) < 2 * error:
        return tr("in both directions alike, as by noise or by a different order of tokens or completions")
    side = tr("theirs are larger") if off.mean() > 0 else tr("theirs are smaller")
    return tr("{side}, by differing amounts").format(side=side)
