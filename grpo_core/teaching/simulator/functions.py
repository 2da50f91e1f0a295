"""One update of the bandit with one prompt, as functions of arrays of any library that follows the Array API standard.

They share the loss, the advantages, the softmax and the optimizer with :mod:`grpo_core.bandit.simulate`. Tokens are
found by comparison with all actions instead of by index, because the standard has no gather and scatter in several
axes. Results are equal up to rounding.

=========  =========  ================================================
symbol     shape      meaning
=========  =========  ================================================
z          (1, 1, A)  logits; so are log π, log π_old and log π_ref
tokens     (1, G, 1)  the sampled actions, counted from 0, as floats
actions    (A,)       the numbers 0 to A − 1
=========  =========  ================================================
"""

from __future__ import annotations

from grpo_core import kl
from grpo_core import objective as loss
from grpo_core.advantages import advantages
from grpo_core.arrays import Array, array_namespace
from grpo_core.bandit import tabular_policy as policy
from grpo_core.bandit.gradient import through_softmax
from grpo_core.bandit.optimizer import Moments, stepped
from grpo_core.config import Settings

Named = dict[str, Array]


def sampled(
    settings: Settings, *, logits: Array, uniforms: Array, reference: Array, actions: Array, paid: Array
) -> Named:
    """Return a batch and its advantages.

    Args:
        settings: objective and temperature.
        logits: z.
        uniforms: random numbers, (1, G, 1).
        reference: log π_ref, for a KL penalty in the reward.
        actions: (A,).
        paid: the reward of each action, (A,).

    Returns:
        ``old`` (log π); ``tokens``, ``rewards`` and ``advantage``, (1, G, 1); ``reward_mean`` and ``reward_std``
        (n − 1), one number each.
    """
    xp = array_namespace(logits)
    old = policy.log_probs(logits, settings.learner.temperature)
    passed = xp.cumulative_sum(xp.exp(old), axis=-1) <= uniforms  # (1, G, A)
    count = xp.sum(xp.astype(passed, xp.float64), axis=-1, keepdims=True)
    tokens = xp.minimum(count, float(actions.shape[0] - 1))  # the last action absorbs the rounding error
    rewards = xp.reshape(_entries(paid, tokens, actions), (1, 1, tokens.shape[1]))
    mean = xp.sum(rewards, axis=-1, keepdims=True) / rewards.shape[-1]
    variance = xp.sum((rewards - mean) ** 2, axis=-1) / max(rewards.shape[-1] - 1, 1)
    k1 = None
    if settings.objective.kl_in_reward:
        logp, ref_logp = (_entries(table, tokens, actions) for table in (old, reference))
        k1 = xp.reshape(kl.estimate(kl.IN_REWARD, logp, ref_logp), rewards.shape)
    advantage = advantages(settings.objective, rewards, kl=k1, all_scored=True)
    return {
        "old": old,
        "tokens": tokens,
        "rewards": xp.reshape(rewards, tokens.shape),
        "advantage": xp.reshape(advantage, tokens.shape),
        "reward_mean": mean,
        "reward_std": xp.sqrt(variance),
    }


def passed(
    settings: Settings,
    *,
    logits: Array,
    old: Array,
    reference: Array,
    tokens: Array,
    advantage: Array,
    actions: Array,
) -> Named:
    """Return the loss of a pass and its gradient.

    Args:
        settings: objective and temperature.
        logits: z before the pass.
        old, reference: log π_old and log π_ref.
        tokens, actions: as in the module's table.
        advantage: (1, G, 1).

    Returns:
        ``change`` (d loss / d z); ``ratio``, ``clipped``, ``divergence`` (the KL estimate) and ``push`` (d loss /
        d log π) of each completion, (1, G, 1); ``loss``, ``clip_fraction`` and ``grad_norm``, one number each.
    """
    xp, goal, temperature = array_namespace(logits), settings.objective, settings.learner.temperature
    dist = policy.log_probs(logits, temperature)
    logp, old_logp, ref_logp = (_entries(table, tokens, actions) for table in (dist, old, reference))
    push = loss.gradient(goal, logp, old_logp, advantage, None, ref_logp=ref_logp)
    by_action = xp.sum(xp.where(tokens == actions, push, 0.0), axis=-2, keepdims=True)
    change = through_softmax(by_action, xp.exp(dist), temperature)
    terms = loss.evaluate(goal, logp, old_logp, advantage, None, ref_logp=ref_logp)
    clipped = xp.astype(terms.clipped, xp.float64)
    return {
        "change": change,
        "ratio": terms.ratio,
        "clipped": clipped,
        "divergence": terms.kl,
        "push": push,
        "loss": terms.loss,
        "clip_fraction": xp.sum(clipped) / tokens.shape[1],
        "grad_norm": xp.sqrt(xp.sum(change**2)),
    }


def moved(settings: Settings, *, logits: Array, change: Array, first: Array, second: Array, steps: Array) -> Named:
    """Return logits and Adam's moments after a step of the optimizer. ``steps`` counts Adam's steps, (1, 1, 1)."""
    moments = Moments(first=first, second=second, steps=steps)
    logits, moments = stepped(settings.optimizer, logits, change, moments)
    return {"logits": logits, "first": moments.first, "second": moments.second, "steps": moments.steps}


def measured(settings: Settings, *, logits: Array, reference: Array, paid: Array) -> Named:
    """Return the policy ``prob`` (1, 1, A), and its ``kl`` from the reference, ``entropy``, ``max_prob`` and expected
    ``reward``, one number each. ``paid`` is the reward of each action, (A,).
    """
    xp, dist = array_namespace(logits), policy.log_probs(logits, settings.learner.temperature)
    prob = xp.exp(dist)
    return {
        "prob": prob,
        "kl": kl.exact(dist, reference),
        "entropy": kl.entropy(dist),
        "max_prob": xp.max(prob, axis=-1),
        "reward": xp.sum(prob * paid),
    }


def _entries(table: Array, tokens: Array, actions: Array) -> Array:
    """Return the entries of ``table`` (1, 1, A) or (A,) at the tokens, (1, G, 1)."""
    xp = array_namespace(tokens)
    return xp.sum(xp.where(tokens == actions, table, 0.0), axis=-1, keepdims=True)
