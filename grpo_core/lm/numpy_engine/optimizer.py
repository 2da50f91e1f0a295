"""The optimizer's step on all weights at once: plain gradient descent, and AdamW as in torch."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from grpo_core.config import Optimizer


@dataclass(kw_only=True, eq=False)
class Memory:
    """State of AdamW.

    Attributes:
        mean: (n,) running mean of the gradient.
        square: (n,) running mean of its square.
    """

    mean: np.ndarray
    square: np.ndarray
    steps: int


def limited(gradient: np.ndarray, limit: float | None) -> float:
    """Scale ``gradient`` (n,) down to the norm ``limit`` in place. Return its norm before scaling.

    The factor is that of torch's ``clip_grad_norm_``, limit / (norm + 1e-6), at most 1.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        norm = math.sqrt(float(np.vdot(gradient, gradient)))
    if limit is not None and limit / (norm + 1e-6) < 1:
        gradient *= limit / (norm + 1e-6)
    return norm


def stepped(wanted: Optimizer, weights: np.ndarray, gradient: np.ndarray, memory: Memory | None) -> Memory | None:
    """Take one step on ``weights`` (n,) in place, overwriting ``gradient``. Return the new state.

    AdamW (arXiv:1412.6980 algorithm 1 and arXiv:1711.05101), w ← (1 − α λ) w − α m̂ / (√v̂ + ε) with m̂ = m / (1 − β₁ᵗ)
    and v̂ = v / (1 − β₂ᵗ).
    """
    rate = wanted.learning_rate
    with np.errstate(over="ignore", invalid="ignore"):  # the learner reports non-finite numbers
        if wanted.weight_decay:
            decay = rate * wanted.weight_decay
            weights *= 1 - decay
        if wanted.kind == "sgd":
            gradient *= rate
            weights -= gradient
            return memory
        if wanted.kind != "adam":
            raise ValueError(f"there is no optimizer “{wanted.kind}”")
        if memory is None:
            memory = Memory(mean=np.zeros_like(weights), square=np.zeros_like(weights), steps=0)
        memory.steps += 1
        first, second = wanted.adam_beta1, wanted.adam_beta2
        memory.mean += (gradient - memory.mean) * (1 - first)
        memory.square *= second
        gradient *= gradient
        gradient *= 1 - second
        memory.square += gradient
        divisor = np.sqrt(memory.square)
        divisor /= math.sqrt(1 - second**memory.steps)
        divisor += wanted.adam_epsilon
        np.divide(memory.mean, divisor, out=divisor)
        divisor *= rate / (1 - first**memory.steps)
        weights -= divisor
    return memory
