"""Optimizers, which turn a gradient into a change of the parameters: the plain step, and Adam."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from grpo_core.arrays import Array, array_namespace
from grpo_core.config import Optimizer


@dataclass(frozen=True, kw_only=True, eq=False)
class Moments:
    """Adam's moments. Plain steps leave it as it is.

    Attributes:
        first: running mean of the gradient, shape of the parameters.
        second: running mean of its square.
        steps: steps that Adam has taken.
    """

    first: Array
    second: Array
    steps: int


def no_moments(parameters: Array) -> Moments:
    """Adam's memory before its first step."""
    xp = array_namespace(parameters)
    return Moments(first=xp.zeros_like(parameters), second=xp.zeros_like(parameters), steps=0)


def stepped(optimizer: Optimizer, parameters: Array, gradient: Array, moments: Moments) -> tuple[Array, Moments]:
    """Parameters after one step, θ − α ∇L or Adam's (arXiv:1412.6980 algorithm 1), and Adam's memory after it.

    A gradient longer than the largest norm is scaled down to it first; weight decay acts beside the gradient, as in
    AdamW (arXiv:1711.05101). Parameters and gradient have the shape (R, ...), and each run has a norm of its own.
    """
    if optimizer.max_grad_norm is not None:
        xp = array_namespace(gradient)
        norm = xp.sqrt(xp.sum(gradient**2, axis=tuple(range(1, gradient.ndim)), keepdims=True))
        gradient = gradient * xp.minimum(1.0, optimizer.max_grad_norm / xp.maximum(norm, 1e-300))
    if optimizer.weight_decay:
        parameters = parameters * (1 - optimizer.learning_rate * optimizer.weight_decay)
    return STEPS[optimizer.kind](optimizer, parameters, gradient, moments)


def _plain(optimizer: Optimizer, parameters: Array, gradient: Array, moments: Moments) -> tuple[Array, Moments]:
    return parameters - optimizer.learning_rate * gradient, moments


def _adam(optimizer: Optimizer, parameters: Array, gradient: Array, moments: Moments) -> tuple[Array, Moments]:
    b1, b2, steps = optimizer.adam_beta1, optimizer.adam_beta2, moments.steps + 1
    first = b1 * moments.first + (1 - b1) * gradient
    second = b2 * moments.second + (1 - b2) * gradient**2
    mean, square = first / (1 - b1**steps), second / (1 - b2**steps)
    change = optimizer.learning_rate * mean / (array_namespace(square).sqrt(square) + optimizer.adam_epsilon)
    return parameters - change, Moments(first=first, second=second, steps=steps)


STEPS: dict[str, Callable[[Optimizer, Array, Array, Moments], tuple[Array, Moments]]] = {
    "sgd": _plain, "adam": _adam,
}  # fmt: skip
"""Every optimizer by its name in the settings: parameters and memory after its step."""

ROUNDING = 1e-12
"""A change of the parameters that is shorter is rounding, not a direction."""


def rescaled(before: Array, after: Array, length: float) -> Array:
    """``after`` moved along the line from ``before`` until each run (R, ...) has moved by ``length``, or not at all."""
    xp, change = array_namespace(before), after - before
    size = xp.sqrt(xp.sum(change**2, axis=tuple(range(1, change.ndim)), keepdims=True))
    moved = size > ROUNDING
    return before + change * xp.where(moved, length / xp.where(moved, size, 1.0), 0.0)
