"""What is maximised, per token: how a ratio r and an advantage A combine, and how a change flows back to log π.

Each surrogate is a value and a ``pull``: given dL/d surrogate (..., B, T), the pull returns dL/d log π (..., B, T).
The pulls are the closed forms; torch's autograd on the values gives the same numbers (a test holds them together).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from grpo_core.arrays import Array, as_array, clamp, stop_gradient
from grpo_core.config import Objective


@dataclass(frozen=True, kw_only=True)
class Batch:
    """A batch whose padding has been zeroed, with its ratios.

    Attributes:
        xp: the array library's namespace.
        objective: the switches.
        mask: (..., B, T), boolean.
        logp: log π of the sampled tokens, (..., B, T); 0 in padding.
        log_ratio: log π − log π_old per token, (..., B, T), limited if the objective says so; 0 in padding.
        limited: where that limit replaced the log-ratio, boolean (..., B, T); None without a limit.
        ratio: r at the objective's level, (..., B, T); 1 in padding.
        advantage: (..., B, T); 0 in padding.
        length: unmasked tokens per completion, at least 1, (..., B, 1).
    """

    xp: Array
    objective: Objective
    mask: Array
    logp: Array
    log_ratio: Array
    limited: Array | None
    ratio: Array
    advantage: Array
    length: Array

    def through_ratio(self, upstream: Array) -> Array:
        """dL/d log π from dL/d log r: a token's own, or the whole completion's where it has one ratio."""
        xp, level = self.xp, self.objective.level
        if level != "token":
            upstream = xp.sum(xp.where(self.mask, upstream, 0.0), axis=-1, keepdims=True)
            if level == "sequence":
                upstream = upstream / self.length
        return self.through_limit(upstream)

    def through_limit(self, upstream: Array) -> Array:
        """Nothing flows through a log-ratio that its limit has replaced."""
        if self.limited is None:
            return upstream
        return self.xp.where(self.limited, 0.0, upstream)


def _clip(b: Batch) -> Array:
    """min(min(r, c) A, clip(r, 1 − ε, 1 + ε⁺) A); c is the dual clip. PPO, arXiv:1707.06347 eq. 7; c: 1912.09729."""
    return b.xp.minimum(_capped(b) * b.advantage, _banded(b) * b.advantage)


def _clip_pull(b: Batch, upstream: Array) -> Array:
    """d/d log r = r A where the branch that was taken still follows r, else 0 (at a bound it still does)."""
    slope = b.ratio * b.advantage
    return b.through_ratio(upstream * b.xp.where(_follows(b), slope, 0.0))


def _clip_stopped(b: Batch) -> Array:
    return ~_follows(b) & (b.advantage != 0)


def _follows(b: Batch) -> Array:
    """Whether the branch of the minimum that was taken changes with r."""
    xp, r, a, o = b.xp, b.ratio, b.advantage, b.objective
    below_high, above_low = r <= 1 + o.clip_high, r >= 1 - o.clip_low
    if o.dual_clip is None:
        return xp.where(a > 0, below_high, above_low)
    return xp.where(_capped(b) * a <= _banded(b) * a, r <= o.dual_clip, below_high & above_low)


def _capped(b: Batch) -> Array:
    return clamp(b.ratio, high=b.objective.dual_clip)


def _banded(b: Batch) -> Array:
    return clamp(b.ratio, 1 - b.objective.clip_low, 1 + b.objective.clip_high)


def _cispo(b: Batch) -> Array:
    """sg(min(r, cap)) A log π: the weight is clipped, never the push. MiniMax-M1, arXiv:2506.13585 eq. 4; TRL."""
    return _cispo_weight(b) * b.advantage * b.logp


def _cispo_weight(b: Batch) -> Array:
    return stop_gradient(clamp(b.ratio, high=b.objective.clip_high))


def _cispo_pull(b: Batch, upstream: Array) -> Array:
    return upstream * _cispo_weight(b) * b.advantage


def _cispo_stopped(b: Batch) -> Array:
    return b.ratio > b.objective.clip_high


def _sapo(b: Batch) -> Array:
    """(4/τ) σ(τ (r − 1)) A, τ by the sign of A: a soft gate instead of a clip. SAPO, arXiv:2511.20347."""
    tau, gate = _sapo_gate(b)
    return 4 / tau * gate * b.advantage


def _sapo_gate(b: Batch) -> tuple[Array, Array]:
    o = b.objective
    positive, negative = as_array(o.sapo_temperature_pos, b.ratio), as_array(o.sapo_temperature_neg, b.ratio)
    tau = b.xp.where(b.advantage > 0, positive, negative)
    return tau, 0.5 + 0.5 * b.xp.tanh(tau * (b.ratio - 1) / 2)


def _sapo_pull(b: Batch, upstream: Array) -> Array:
    _, gate = _sapo_gate(b)
    return b.through_ratio(upstream * 4 * gate * (1 - gate) * b.ratio * b.advantage)


def _vespo(b: Batch) -> Array:
    """sg(φ) A log π, φ = exp(λ + k log w − λ w), w the completion's own product of ratios. arXiv:2602.10693; TRL."""
    return _vespo_weight(b) * b.advantage * b.logp


def _vespo_weight(b: Batch) -> Array:
    """φ, with TRL's clamps: log-ratios to ±20, their sum to [log 1e-8, 20]. φ(1) = 1."""
    xp, o = b.xp, b.objective
    positive = b.advantage >= 0
    k = xp.where(positive, as_array(o.vespo_k_pos, b.logp), as_array(o.vespo_k_neg, b.logp))
    decay = xp.where(positive, as_array(o.vespo_lambda_pos, b.logp), as_array(o.vespo_lambda_neg, b.logp))
    log_w = clamp(xp.sum(clamp(b.log_ratio, -20.0, 20.0), axis=-1, keepdims=True), math.log(1e-8), 20.0)
    return stop_gradient(xp.exp(decay + k * log_w - decay * xp.exp(log_w)))


def _vespo_pull(b: Batch, upstream: Array) -> Array:
    return upstream * _vespo_weight(b) * b.advantage


def _gmpo(b: Batch) -> Array:
    """exp(mean_t of the log-ratios, each clipped on the side its push points to) A. GMPO, arXiv:2507.20673 eq. 4."""
    return _gmpo_ratio(b) * b.advantage


def _gmpo_ratio(b: Batch) -> Array:
    xp, o = b.xp, b.objective
    risen, fallen = clamp(b.log_ratio, high=o.clip_high), clamp(b.log_ratio, -o.clip_low)
    clipped = xp.where(b.advantage > 0, risen, xp.where(b.advantage < 0, fallen, b.log_ratio))
    return xp.exp(xp.sum(clipped, axis=-1, keepdims=True) / b.length)


def _gmpo_stopped(b: Batch) -> Array:
    a, o = b.advantage, b.objective
    return ((a > 0) & (b.log_ratio > o.clip_high)) | ((a < 0) & (b.log_ratio < -o.clip_low))


def _gmpo_pull(b: Batch, upstream: Array) -> Array:
    xp = b.xp
    whole = xp.sum(upstream * _gmpo_ratio(b) * b.advantage, axis=-1, keepdims=True) / b.length
    return b.through_limit(xp.where(_gmpo_stopped(b), 0.0, whole))


def _log_prob(b: Batch) -> Array:
    """A log π: REINFORCE (Williams 1992), no ratio and no clip."""
    return b.advantage * b.logp


def _log_prob_pull(b: Batch, upstream: Array) -> Array:
    return upstream * b.advantage


def _never(b: Batch) -> Array:
    return b.xp.zeros_like(b.mask)


@dataclass(frozen=True, kw_only=True)
class Surrogate:
    """A surrogate's three faces.

    Attributes:
        value: (..., B, T).
        pull: dL/d value -> dL/d log π, both (..., B, T).
        clipped: where the token's push was stopped (or its weight cut), boolean (..., B, T).
    """

    value: Callable[[Batch], Array]
    pull: Callable[[Batch, Array], Array]
    clipped: Callable[[Batch], Array]


SURROGATES = {
    "clip": Surrogate(value=_clip, pull=_clip_pull, clipped=_clip_stopped),
    "cispo": Surrogate(value=_cispo, pull=_cispo_pull, clipped=_cispo_stopped),
    "sapo": Surrogate(value=_sapo, pull=_sapo_pull, clipped=_never),
    "vespo": Surrogate(value=_vespo, pull=_vespo_pull, clipped=_never),
    "gmpo": Surrogate(value=_gmpo, pull=_gmpo_pull, clipped=_gmpo_stopped),
    "log_prob": Surrogate(value=_log_prob, pull=_log_prob_pull, clipped=_never),
}
