"""Estimators of KL(π‖π_ref) from the sampled token (Schulman, joschu.net/blog/kl-approx.html), and the exact value.

With d = log π_ref − log π of the sampled token:

====  ==========  =====================  =====================================================
name  value       d value / d log π      expected gradient as a loss, on-policy
====  ==========  =====================  =====================================================
k1    −d          1                      0
k2    d²/2        −d                     ∇KL(π‖π_ref)
k3    e^d − d − 1 1 − e^d                ∇KL(π_ref‖π): the other direction
====  ==========  =====================  =====================================================

k3's *value* is an unbiased estimate of KL(π‖π_ref); multiplied by the ratio, its gradient is that of KL(π‖π_ref) too.
"""

from __future__ import annotations

from grpo_core.arrays import Array, array_namespace


def estimate(kind: str, logp: Array, ref_logp: Array) -> Array:
    """Per-token estimate ``kind`` ("k1", "k2" or "k3") of KL(π‖π_ref), in nats; shape of ``logp``."""
    d = ref_logp - logp
    if kind == "k1":
        return -d
    if kind == "k2":
        return d**2 / 2
    return array_namespace(d).expm1(d) - d


def derivative(kind: str, logp: Array, ref_logp: Array) -> Array:
    """d ``estimate`` / d ``logp``; shape of ``logp``."""
    xp = array_namespace(logp)
    if kind == "k1":
        return xp.ones_like(logp)
    d = ref_logp - logp
    return -d if kind == "k2" else -xp.expm1(d)


def exact(logp: Array, ref_logp: Array, prob: Array | None = None) -> Array:
    """KL(π‖π_ref) = Σ_a π(a) (log π(a) − log π_ref(a)) over the last axis. (..., V) -> (...), in nats.

    An action that π never takes (log π = −inf) adds nothing. ``prob``: π, for whoever has it already.
    """
    xp = array_namespace(logp, ref_logp)
    p = xp.exp(logp) if prob is None else prob
    return xp.sum(p * (xp.where(p > 0, logp, 0.0) - xp.where(p > 0, ref_logp, 0.0)), axis=-1)


def entropy(logp: Array, prob: Array | None = None) -> Array:
    """H(π) = −Σ_a π(a) log π(a) over the last axis. (..., V) -> (...), in nats. ``prob``: π, if it is known."""
    xp = array_namespace(logp)
    p = xp.exp(logp) if prob is None else prob
    return -xp.sum(p * xp.where(p > 0, logp, 0.0), axis=-1)
