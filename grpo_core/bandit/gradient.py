"""Gradient on the logits from the gradient on the tokens' log-probabilities.

With g_i = dL/d log π(a_i), summed over the tokens i sampled in one context:

    dL/dz_j = (1 / temperature) Σ_i g_i (1[a_i = j] − π(j))

An exact KL and an entropy bonus also depend on the whole distribution. Each visit of weight w adds:

    d KL(π‖π_ref)/dz_j = (w / temperature) π(j) (log π(j) − log π_ref(j) − KL)
    d H(π)/dz_j = −(w / temperature) π(j) (log π(j) + H)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from grpo_core import kl, recompute
from grpo_core.arrays import Array, array_namespace, is_zero
from grpo_core.bandit.layout import places, scatter
from grpo_core.bandit.tabular_policy import tempered
from grpo_core.config import Objective
from grpo_core.objective import Terms
from grpo_core.record import Step


def through_tokens(
    token_gradient: np.ndarray, where: np.ndarray, prob: np.ndarray, temperature: float | np.ndarray
) -> np.ndarray:
    """Return dL/dz (R, C, A) of the part of the loss that depends only on the sampled tokens' log-probabilities.

    Args:
        token_gradient: dL/d log π (R, B, T), 0 in padding.
        where: (R, B, T), flat index of each token in the memory of a table (R, C, A).
        prob: π (R, C, A).
        temperature: a number, or (R, 1, 1).
    """
    return np.asarray(through_softmax(scatter(token_gradient, where, prob.shape), prob, temperature))


def through_softmax(pushed: Array, prob: Array, temperature: Array | float) -> Array:
    """Return dL/dz (R, C, A) from dL/d log π (R, C, A), already summed over the tokens of each action.

    ``pushed`` is overwritten.
    """
    pushed -= prob * array_namespace(prob).sum(pushed, axis=-1, keepdims=True)
    return tempered(pushed, temperature)


def needs_distributions(objective: Objective) -> bool:
    """Return whether the loss depends on full distributions, not only on the sampled tokens' log-probabilities."""
    exact = objective.kl == kl.EXACT and not objective.kl_in_reward and not is_zero(objective.beta)
    return exact or not is_zero(objective.entropy_bonus)


def through_distributions(
    objective: Objective,
    terms: Terms,
    visits: Callable[[Array], Array],
    dist_logp: Array,
    ref_dist_logp: Array,
    temperature: Array | float,
) -> Array:
    """Return dL/dz (R, C, A) of the exact KL and the entropy bonus, which is added to the gradient through the tokens.

    Args:
        objective: ``kl``, ``kl_in``, ``kl_importance``, ``beta``, ``entropy_bonus``.
        terms: the loss of this pass, for its weights and ratios.
        visits: function from token weights, (R, B, T) or one number, to their sum in each context, (R, C, 1).
        dist_logp, ref_dist_logp: log π (R, C, A) and log π_ref, (C, A) or (R, C, A).
        temperature: a number, or (R, 1, 1).
    """
    xp = array_namespace(dist_logp)
    prob = xp.exp(dist_logp)
    result = xp.zeros_like(prob)
    if objective.kl == kl.EXACT and not objective.kl_in_reward:
        weight = objective.beta * terms.weight * (terms.ratio if objective.kl_importance else 1.0)
        divergence = kl.exact(dist_logp, ref_dist_logp)[..., None]
        result = result + visits(weight) * prob * (dist_logp - ref_dist_logp - divergence)
    if not is_zero(objective.entropy_bonus):
        entropy = kl.entropy(dist_logp)[..., None]
        result = result + visits(objective.entropy_bonus * terms.weight) * prob * (dist_logp + entropy)
    return result / temperature


def visits_of(context: np.ndarray, dist: np.ndarray) -> Callable[[Array], Array]:
    """Return a function that sums token weights by context, for use in :func:`through_distributions`, with ``dist``
    (R, C, A).

    ``context`` (R, B, T) is each token's row in the table of distributions.
    """
    table = (*dist.shape[:-1], 1)
    visited = places(context, 0, table)
    return lambda weight: scatter(np.broadcast_to(weight, context.shape), visited, table)


def logit_gradient(step: Step, passed: int, *, given: np.ndarray | None = None) -> np.ndarray:
    """Return d loss / d logits of pass ``passed`` (0 = the first) of a recorded update, (C, A).

    Args:
        step: an update that has its full distributions.
        given: :func:`grpo_core.recompute.advantage` of that step, if already computed.

    Raises:
        ValueError: the update does not have the distributions of that pass.
    """
    objective, dist_logp = step.settings.objective, step.distribution(passed)
    if dist_logp is None or step.context is None:
        raise ValueError(f"update {step.step} does not hold the distributions of pass {passed + 1}")
    temperature = step.settings.learner.temperature
    push, pull = recompute.token_gradient(step, passed, given=given)
    context = step.context[None].astype(np.intp)
    where = places(context, step.tokens, (1, *dist_logp.shape))
    token_gradient = (push if pull is None else push + pull)[None]
    result = through_tokens(token_gradient, where, np.exp(dist_logp)[None], temperature)
    if needs_distributions(objective):
        terms = recompute.terms(step, passed, given=given)
        ref_dist_logp = dist_logp if step.ref_dist_logp is None else step.ref_dist_logp  # unused by an entropy bonus
        result = result + through_distributions(
            objective, terms, visits_of(context, dist_logp[None]), dist_logp[None], ref_dist_logp[None], temperature
        )
    return np.asarray(result[0])
