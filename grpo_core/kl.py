"""Estimators of KL(π‖π_ref) from the sampled token (Schulman, joschu.net/blog/kl-approx.html), and the exact value.

With d = log π_ref − log π of the sampled token:

====  ==========  =====================  ==============================  ==============================
name  value       d value / d log π      expected gradient as a loss     times the token's ratio
====  ==========  =====================  ==============================  ==============================
k1    −d          1                      0                               ∇KL(π‖π_ref)
k2    d²/2        −d                     ∇KL(π‖π_ref)                    ∇E_π[d²/2]: not the KL's
k3    e^d − d − 1 1 − e^d                ∇KL(π_ref‖π): the other way     ∇KL(π‖π_ref)
====  ==========  =====================  ==============================  ==============================

The fourth column holds for samples of the current policy, the last one also after the policy has moved away from the
sampling policy. k1 and k3 are unbiased estimates of KL(π‖π_ref), k2 is not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from grpo_core.arrays import Array, array_namespace
from grpo_core.expression import Expression, exponential
from grpo_core.text import tr
from grpo_core.typeset import number, signed

EXACT = "exact"
"""The estimator that needs the full distributions instead of the sampled token."""
IN_REWARD = "k1"
"""The estimator that is subtracted from the reward, summed over a completion, whichever estimator is set for the
loss.
"""
SCHULMAN = "Schulman, joschu.net/blog/kl-approx.html"


@dataclass(frozen=True, kw_only=True)
class Distance:
    """d = log π_ref − log π of one token, for an explanation.

    Attributes:
        now, ref: log π and log π_ref.
        index: index of the token in formulas.
    """

    now: float
    ref: float
    index: str

    @property
    def value(self) -> float:
        return self.ref - self.now

    @property
    def general(self) -> str:
        """LaTeX of d with symbols."""
        return rf"\log \pi^{{\mathrm{{ref}}}}_{self.index} - \log \pi_{self.index}"

    @property
    def values(self) -> str:
        """LaTeX of d with the numbers substituted, as in “-1.2 - (-1.5)”."""
        return f"{number(self.ref)} - {signed(self.now)}"

    @property
    def size(self) -> float:
        """Scale for judging the rounding error of d, in nats."""
        return max(abs(self.now), abs(self.ref))


@dataclass(frozen=True, kw_only=True)
class Estimator:
    """An estimate of KL(π‖π_ref) from one sampled token.

    Attributes:
        value: function from d to the estimate, in nats; arrays of any shape.
        derivative: function from d to d estimate / d log π.
        explained, slope: the same two as expressions for one token.
        unbiased: whether its mean is the KL; with the token's ratio as a factor, its expected gradient is then that of
            KL(π‖π_ref).
        pulls_back: whether, as a loss without the ratio, its expected on-policy gradient is that of KL(π‖π_ref).
        pulls_nowhere: whether, as a loss without the ratio, its expected on-policy gradient is 0.
        exponential: whether it grows exponentially in d.
        note: remark on its use as a loss; ``alone`` applies without the ratio as a factor, ``with_ratio`` with each
            token's ratio.
        script, script_slope: value and derivative as NumPy expressions of an array ``d``.
    """

    value: Callable[[Array], Array]
    derivative: Callable[[Array], Array]
    explained: Callable[[Distance], Expression]
    slope: Callable[[Distance], Expression]
    unbiased: bool
    pulls_back: bool
    pulls_nowhere: bool = False
    exponential: bool = False
    note: str = ""
    alone: str = ""
    with_ratio: str
    script: str
    script_slope: str


def estimate(kind: str, logp: Array, ref_logp: Array) -> Array:
    """Estimate KL(π‖π_ref) per token, in nats, with the estimator ``kind`` (a key of :data:`ESTIMATORS`). Same shape as
    ``logp``.
    """
    return ESTIMATORS[kind].value(ref_logp - logp)


def derivative(kind: str, logp: Array, ref_logp: Array) -> Array:
    """Return d ``estimate`` / d ``logp``, in the shape of ``logp``."""
    return ESTIMATORS[kind].derivative(ref_logp - logp)


def exact(logp: Array, ref_logp: Array, prob: Array | None = None, *, axis: int = -1) -> Array:
    """Return KL(π‖π_ref) = Σ_a π(a) (log π(a) − log π_ref(a)) over the last axis. (..., V) -> (...), in nats.

    An action that π never takes (log π = −inf) adds nothing. ``prob`` is π, if already computed. ``axis`` is the axis
    of the actions, if it is not the last.
    """
    xp = array_namespace(logp, ref_logp)
    p = xp.exp(logp) if prob is None else prob
    if _all_taken(p):
        return xp.sum(p * (logp - ref_logp), axis=axis)
    return xp.sum(p * (xp.where(p > 0, logp, 0.0) - xp.where(p > 0, ref_logp, 0.0)), axis=axis)


def entropy(logp: Array, prob: Array | None = None, *, axis: int = -1) -> Array:
    """Return H(π) = −Σ_a π(a) log π(a) over the last axis. (..., V) -> (...), in nats. ``prob`` and ``axis`` as in
    :func:`exact`.
    """
    xp = array_namespace(logp)
    p = xp.exp(logp) if prob is None else prob
    return -xp.sum(p * (logp if _all_taken(p) else xp.where(p > 0, logp, 0.0)), axis=axis)


def _all_taken(prob: Array) -> bool:
    """Return whether no probability is 0, so that every logarithm is finite. NumPy only: on a GPU the check would force
    a synchronisation.
    """
    return type(prob) is np.ndarray and prob.size > 0 and bool(prob.min() > 0)


def _k1(d: Distance) -> Expression:
    return Expression(
        general=rf"\log \pi_{d.index} - \log \pi^{{\mathrm{{ref}}}}_{d.index}",
        values=f"{number(d.now)} - {signed(d.ref)}",
        value=-d.value,
        source=SCHULMAN,
        scale=d.size,
    )


def _k2(d: Distance) -> Expression:
    return Expression(
        general=rf"\frac{{1}}{{2}} ({d.general})^{{2}}",
        values=rf"\frac{{1}}{{2}} ({d.values})^{{2}}",
        value=d.value * d.value / 2,
        source=SCHULMAN,
        scale=d.size * abs(d.value),
    )


def _k2_slope(d: Distance) -> Expression:
    return Expression(
        general=rf"\left(-({d.general})\right)", values=rf"\left(-({d.values})\right)", value=-d.value, scale=d.size
    )


def _k3(d: Distance) -> Expression:
    x = d.value
    return Expression(
        general="e^{d} - d - 1",
        values=rf"e^{{{number(x)}}} - {signed(x)} - 1",
        value=math.expm1(x) - x if x < 709.78 else math.inf,
        source=f"{SCHULMAN}; DeepSeekMath, arXiv:2402.03300, equation 4",
        scale=max(abs(x), abs(math.expm1(min(x, 700.0))) * d.size),
    )


def _k3_slope(d: Distance) -> Expression:
    x = d.value
    return Expression(
        general=rf"\left(1 - e^{{{d.general}}}\right)",
        values=rf"\left(1 - e^{{{d.values}}}\right)",
        value=-math.expm1(x) if x < 709.78 else -math.inf,
        scale=max(1.0, d.size) * exponential(min(max(x, 0.0), 700.0)),
    )


_IMPORTANCE = tr("Multiplied by the ratio, its expected gradient is that of KL(π‖π_ref), also in later passes.")

ESTIMATORS: dict[str, Estimator] = {
    "k1": Estimator(
        value=lambda d: -d,
        derivative=lambda d: array_namespace(d).ones_like(d),
        explained=_k1,
        slope=lambda d: Expression(general="", values="1", value=1.0),
        unbiased=True,
        pulls_back=False,
        pulls_nowhere=True,
        alone=tr("As a loss its expected gradient is 0 on the policy's own samples."),
        with_ratio=_IMPORTANCE,
        script="-d",
        script_slope="1.0",
    ),
    "k2": Estimator(
        value=lambda d: d**2 / 2,
        derivative=lambda d: -d,
        explained=_k2,
        slope=_k2_slope,
        unbiased=False,
        pulls_back=True,
        note=tr("As a loss its expected gradient, on the policy's own samples, is that of KL(π‖π_ref)."),
        with_ratio=tr(
            "Multiplied by the ratio, this no longer holds: the expected gradient is that of the mean of k2, which "
            "is not the KL."
        ),
        script="d**2 / 2",
        script_slope="-d",
    ),
    "k3": Estimator(
        value=lambda d: array_namespace(d).expm1(d) - d,
        derivative=lambda d: -array_namespace(d).expm1(d),
        explained=_k3,
        slope=_k3_slope,
        unbiased=True,
        pulls_back=False,
        exponential=True,
        note=tr("d is log π_ref − log π of the token. Never below 0, and an unbiased estimate of KL(π‖π_ref)."),
        with_ratio=_IMPORTANCE,
        script="np.expm1(d) - d",
        script_slope="-np.expm1(d)",
    ),
}
"""Estimators from the sampled token, by name in the settings. :data:`EXACT` is not among them."""
