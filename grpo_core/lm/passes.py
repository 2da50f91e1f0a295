"""The loss of one pass over a batch of the character transformer, and the critic."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from grpo_core import kl
from grpo_core.arrays import Array, array_namespace, as_array, from_numpy, stop_gradient, to_numpy
from grpo_core.config import Objective
from grpo_core.errors import NonFiniteError
from grpo_core.lm.interface import Scores
from grpo_core.lm.packing import PackedTokens
from grpo_core.objective import Terms, evaluate, gradient


@dataclass(frozen=True, kw_only=True, eq=False)
class Loss:
    """The loss of one pass, for any array library.

    Attributes:
        old: (B, T) log-probabilities before the first pass.
        advantage: (B,) or (B, T).
        reference: the scores of the reference policy; None if they are not needed.
        sampling: (B, T) log-probabilities computed by the sampler; None without an importance cap.
    """

    objective: Objective
    place: PackedTokens[Any]
    now: Scores
    old: Array
    advantage: Array
    reference: Scores | None
    sampling: Array | None = None

    @cached_property
    def terms(self) -> Terms:
        """Return the loss with all intermediate values. Autograd adds the gradient through the full distributions."""
        return evaluate(self.objective, self.now.logp, self.old, self.advantage, self.place.mask, **self._given)

    @property
    def token_gradient(self) -> Array:
        """Return d loss / d logp (B, T) in closed form, without the gradient through the full distributions."""
        return gradient(self.objective, self.now.logp, self.old, self.advantage, self.place.mask, **self._given)

    @cached_property
    def _given(self) -> dict[str, Any]:
        reference, whole = self.reference, dict[str, Any]()
        if self.objective.kl == kl.EXACT and reference is not None:
            whole["exact_kl"] = exact_kl(self.now.dist_logp, reference.dist_logp)[self.place.context]
        if self.objective.entropy_bonus:
            whole["entropy"] = kl.entropy(self.now.dist_logp)[self.place.context]
        return whole | {"ref_logp": None if reference is None else reference.logp, "sampling_logp": self.sampling}


def values_of(critic: Array, now: Scores, place: PackedTokens[Any]) -> Array:
    """Return the critic's value before each token, (B, T)."""
    each = as_array(stop_gradient(now.stream), critic) @ critic[:-1] + critic[-1]  # (C,)
    return array_namespace(each).where(place.mask, each[place.context], 0.0)


def require_finite(value: float, number: int, what: str) -> None:
    """Check that ``value`` is finite.

    Raises:
        NonFiniteError: it is not; ``what`` is the name of this quantity of update ``number``.
    """
    if not math.isfinite(value):
        raise NonFiniteError(number, what)


def array_of(x: Array) -> np.ndarray:
    """Return ``x`` as a NumPy array in float32."""
    xp = array_namespace(x)
    return to_numpy(xp.astype(x, xp.float32, copy=False))


def exact_kl(dist_logp: Array, ref_dist_logp: Array) -> Array:
    """Compute KL(π‖π_ref) of each context, (C, V) -> (C,), whose derivative with respect to log π(a) is π(a) (log π(a)
    − log π_ref(a) − KL).

    Differentiating the formula directly gives + 1 in place of − KL. On the logits, where Σ π is 1, both are equal in
    exact arithmetic, but Adam turns the rounding error of the direct form into full steps. This form is exactly 0 where
    policy and reference agree.
    """
    xp = array_namespace(dist_logp)
    now = stop_gradient(dist_logp)
    value = kl.exact(now, ref_dist_logp)
    slope = xp.exp(now) * (now - ref_dist_logp - value[..., None])
    through = xp.sum(slope * dist_logp, axis=-1)
    return value + (through - stop_gradient(through))


def learn_values(critic: Array, rate: float, now: Scores, place: PackedTokens[Any], rewards: np.ndarray) -> None:
    """Take one gradient step of the critic on half the squared distance from the reward, averaged over the tokens."""
    xp = array_namespace(critic)
    wanted = from_numpy(np.nan_to_num(rewards), critic)[:, None]
    error = xp.where(place.mask, values_of(critic, now, place) - wanted, 0.0) / place.mask.sum()  # (B, T)
    each = error[..., None] * as_array(now.stream, critic)[place.context]
    critic[:-1] -= rate * xp.sum(each, axis=(0, 1))
    critic[-1] -= rate * error.sum()
