"""The batch that surrogates read, and the backward path of a gradient from a surrogate to log π."""

from __future__ import annotations

from dataclasses import dataclass

from grpo_core.arrays import Array
from grpo_core.config import Objective
from grpo_core.levels import LEVELS


@dataclass(frozen=True, kw_only=True)
class Batch:
    """A batch whose padding has been zeroed, with its ratios.

    Attributes:
        xp: the array library's namespace.
        objective: settings of the loss.
        mask: (..., B, T), boolean; None without padding.
        real: 1 for a token and 0 in padding, (..., B, T); without padding (B, T), or the number 1 if T is 1.
        logp, old_logp: log π and log π_old of the sampled tokens, (..., B, T); 0 in padding.
        log_ratio: log π − log π_old per token, (..., B, T), limited if the objective says so; 0 in padding.
        limited: whether that limit replaced the log-ratio, boolean (..., B, T); None without a limit.
        ratio: r at the objective's level, (..., B, T); 1 in padding.
        advantage: (..., B, T); 0 in padding.
        length: unmasked tokens per completion, at least 1, (..., B, 1); one number without padding.
    """

    xp: Array
    objective: Objective
    mask: Array | None
    real: Array | float
    logp: Array
    old_logp: Array
    log_ratio: Array
    limited: Array | None
    ratio: Array
    advantage: Array
    length: Array | float

    def through_ratio(self, upstream: Array) -> Array:
        """Backpropagate dL/d log r to dL/d log π, for a ratio per token or one per completion."""
        level = LEVELS[self.objective.level]
        if level.of_completion:
            if self.mask is not None:
                upstream = self.xp.where(self.mask, upstream, 0.0)
            upstream = self.xp.broadcast_to(level.combined(self.xp, upstream, self.length), self.logp.shape)
        return self.through_limit(upstream)

    def through_mean(self, upstream: Array, stopped: Array) -> Array:
        """Backpropagate the gradient with respect to a completion's mean log-ratio to dL/d log π. Tokens in ``stopped``
        get 0.
        """
        whole = self.xp.sum(upstream, axis=-1, keepdims=True) / self.length
        return self.through_limit(self.xp.where(stopped, 0.0, whole))

    def through_limit(self, upstream: Array) -> Array:
        """Zero the gradient of log-ratios that were replaced by their limit."""
        if self.limited is None:
            return upstream
        return self.xp.where(self.limited, 0.0, upstream)
