"""GMPO: the geometric mean of the completion's ratios, each clipped before the mean.

S = exp((1 / L) Σ_t clip(log r_t)) A. GMPO, arXiv:2507.20673, equation 4: a log-ratio is clipped only in the direction
in which the advantage moves it: from above at ε⁺ where A > 0, from below at −ε where A < 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from grpo_core.arrays import Array, clamp
from grpo_core.config import Objective
from grpo_core.expression import ADVANTAGE, Expression, Reading, exponential, ratio_factor
from grpo_core.surrogates.surrogate import Batch, Clip, Path, Ratio, Script, Surrogate
from grpo_core.text import tr
from grpo_core.typeset import signed, total


def mean_ratio(b: Batch) -> Array:
    """Return the geometric mean of the clipped ratios, exp of the mean of the clipped log-ratios, (..., B, 1)."""
    xp, o = b.xp, b.objective
    risen, fallen = clamp(b.log_ratio, high=o.clip_high), clamp(b.log_ratio, -o.clip_low)
    clipped = xp.where(b.advantage > 0, risen, xp.where(b.advantage < 0, fallen, b.log_ratio))
    return xp.exp(xp.sum(clipped, axis=-1, keepdims=True) / b.length)


def stopped(b: Batch) -> Array:
    a, o = b.advantage, b.objective
    return ((a > 0) & (b.log_ratio > o.clip_high)) | ((a < 0) & (b.log_ratio < -o.clip_low))


def explained(t: Reading) -> Expression:
    """Explain the mean ratio times A, which is its own slope."""
    mean, a = t.of_completion(_mean_ratio), t.advantage
    return Expression(
        general=f"{mean.general} {t.advantage_name}",
        values=rf"{mean.values} \cdot {signed(a)}",
        value=mean.value * a,
        note=mean.note,
        source=mean.source,
        scale=mean.size * abs(a),
    )


def _mean_ratio(tokens: Sequence[Reading]) -> Expression:
    clipped = [_clipped(t.objective, t.log_ratio, t.advantage) for t in tokens]
    return Expression(
        general=rf"\exp\left(\frac{{1}}{{L_{{i}}}} \sum_{{t}} \mathrm{{clip}}(\log r_{tokens[0].index})\right)",
        values=rf"\exp\left(\frac{{1}}{{{len(clipped)}}} \left({total(clipped)}\right)\right)",
        value=exponential(math.fsum(clipped) / len(clipped)),
        note=tr(
            "Each log-ratio is clipped before the mean: from above where A is positive, from below where it "
            "is negative."
        ),
        source="GMPO, arXiv:2507.20673, equation 4",
    )


def explained_clip(t: Reading) -> Expression:
    """Explain whether the token's own log-ratio was clipped."""
    x = t.log_ratio
    return Expression(
        general=rf"\mathrm{{clip}}(\log r_{t.index}) \neq \log r_{t.index}",
        values="",
        value=float(_clipped(t.objective, x, t.advantage) != x),
    )


def _clipped(o: Objective, x: float, a: float) -> float:
    if a == 0:
        return x
    return min(x, o.clip_high) if a > 0 else max(x, -o.clip_low)


def band(o: Objective) -> tuple[float, float]:
    """Return the bounds of a token's ratio. The clip is applied to its logarithm."""
    return math.exp(-o.clip_low), math.exp(min(o.clip_high, 700.0))


SURROGATE = Surrogate(
    value=lambda b: mean_ratio(b) * b.advantage,
    pull=lambda b, upstream: upstream * mean_ratio(b) * b.advantage,  # the surrogate is its own derivative
    path=Path.MEAN,
    ratio=Ratio.OWN,
    clip=Clip(stopped=stopped, explained=explained_clip, band=band),
    knobs=("clip_low", "clip_high"),
    explained=explained,
    slope=explained,
    script=lambda o: Script(
        constants={"CLIP_LOW": o.clip_low, "CLIP_HIGH": o.clip_high},
        lines=(
            "risen, fallen = np.minimum(log_ratio, CLIP_HIGH), np.maximum(log_ratio, -CLIP_LOW)",
            "inside = np.where(A > 0, risen, np.where(A < 0, fallen, log_ratio))",
            "clipped = ((A > 0) & (log_ratio > CLIP_HIGH)) | ((A < 0) & (log_ratio < -CLIP_LOW))",
            "surrogate = np.exp(inside.sum(1, keepdims=True) / L) * A",
            "slope = surrogate  # d surrogate / d (mean of the clipped log-ratios)",
        ),
    ),
    terms=lambda o: (ratio_factor(r"\bar{r}", tr("mean ratio")), ADVANTAGE),
)
