"""Optimizers, which turn a gradient into a change of the parameters: plain gradient descent and Adam."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from grpo_core.arrays import Array, array_namespace
from grpo_core.config import Optimizer


@dataclass(frozen=True, kw_only=True, eq=False)
class Moments:
    """Adam's moments. Plain gradient steps do not use them.

    Attributes:
        first: running mean of the gradient, in the shape of the parameters.
        second: running mean of its square.
        steps: number of Adam steps taken.
    """

    first: Array
    second: Array
    steps: int


def no_moments(parameters: Array) -> Moments:
    """Return Adam's state before its first step."""
    xp = array_namespace(parameters)
    return Moments(first=xp.zeros_like(parameters), second=xp.zeros_like(parameters), steps=0)


def stepped(optimizer: Optimizer, parameters: Array, gradient: Array, moments: Moments) -> tuple[Array, Moments]:
    """Take one step, θ − α ∇L or Adam's (arXiv:1412.6980 algorithm 1). Return the new parameters and Adam's new state.

    A gradient above the maximum norm is first scaled down to it; weight decay is decoupled from the gradient, as in
    AdamW (arXiv:1711.05101). Parameters and gradient have the shape (R, ...), and each run has its own norm.
    """
    if optimizer.max_grad_norm is not None:
        xp = array_namespace(gradient)
        norm = xp.sqrt(xp.sum(gradient**2, axis=tuple(range(1, gradient.ndim)), keepdims=True))
        gradient = gradient * xp.minimum(1.0, optimizer.max_grad_norm / xp.maximum(norm, 1e-300))
    if optimizer.weight_decay:
        parameters = parameters * (1 - optimizer.learning_rate * optimizer.weight_decay)
    return STEPS[optimizer.kind](optimizer, parameters, gradient, moments)


def _adam(optimizer: Optimizer, parameters: Array, gradient: Array, moments: Moments) -> tuple[Array, Moments]:
    b1, b2, steps = optimizer.adam_beta1, optimizer.adam_beta2, moments.steps + 1
    first = b1 * moments.first + (1 - b1) * gradient
    second = b2 * moments.second + (1 - b2) * gradient**2
    mean, square = first / (1 - b1**steps), second / (1 - b2**steps)
    change = optimizer.learning_rate * mean / (array_namespace(square).sqrt(square) + optimizer.adam_epsilon)
    return parameters - change, Moments(first=first, second=second, steps=steps)


STEPS: dict[str, Callable[[Optimizer, Array, Array, Moments], tuple[Array, Moments]]] = {
    "sgd": lambda optimizer, parameters, gradient, moments: (parameters - optimizer.learning_rate * gradient, moments),
    "adam": _adam,
}
"""Optimizers by name in the settings, as functions that return parameters and state after the step."""

ROUNDING = 1e-12
"""Length below which a change of the parameters counts as rounding error, without a direction."""


def rescaled(before: Array, after: Array, length: float) -> Array:
    """Rescale the change from ``before`` to ``after`` so that each run (R, ...) moves by ``length``, or not at all."""
    xp, change = array_namespace(before), after - before
    size = xp.sqrt(xp.sum(change**2, axis=tuple(range(1, change.ndim)), keepdims=True))
    moved = size > ROUNDING
    return before + change * xp.where(moved, length / xp.where(moved, size, 1.0), 0.0)
