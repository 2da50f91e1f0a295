"""Arrays that several checks read from an update: rewards of a group, advantages, ratios, gradients."""

from __future__ import annotations

import numpy as np

from grpo_core import recompute
from grpo_core.baselines import BASELINES
from grpo_core.claims.pushes import on_logits, on_tokens, spreads
from grpo_core.record import Step
from grpo_core.rounding import vanishes
from grpo_core.surrogates import SURROGATES, Ratio

ALIKE = 1e-12
"""Largest difference between equal rewards, relative to the largest absolute reward (at least 1)."""
CANCELLED = 1e-14
"""Largest rounding error of a gradient, relative to the sum of the absolute values of the pushes that cancel in it."""


def paid(step: Step, group: int) -> np.ndarray:
    """Return the scored rewards of a group or of its steps, (n,)."""
    rows = step.group == group
    values = step.rewards[rows]
    if step.settings.objective.credits_steps:
        assert step.step_rewards is not None
        values = step.step_rewards[rows][step.mask[rows]]
    return np.asarray(values[~np.isnan(values)])


def equal(values: np.ndarray) -> bool:
    """Return whether all rewards are equal. True for an empty array."""
    return not len(values) or bool(np.ptp(values) <= ALIKE * max(1.0, float(np.abs(values).max())))


def groups(step: Step) -> list[int]:
    return [int(g) for g in np.unique(step.group)]


def dead(step: Step) -> list[int]:
    """Return the groups whose rewards are all equal."""
    return [g for g in groups(step) if equal(paid(step, g))]


def rows(step: Step, group: int | None) -> np.ndarray:
    """Return the completions of a group, or of all dead groups, boolean (B,)."""
    return np.isin(step.group, dead(step) if group is None else [group])


def gained(step: Step) -> np.ndarray:
    """Return the advantage of each token, (B, T). It is 0 in the padding."""
    every = recompute.advantage(step)
    return np.where(step.mask, every if every.ndim > 1 else every[:, None], 0.0)


def silent(step: Step) -> bool:
    """Return whether every advantage is 0."""
    return not gained(step).any()


def within(step: Step) -> bool:
    """Return whether this program computed the advantages by comparing each group only with itself."""
    return BASELINES[step.settings.objective.baseline].within_group and step.advantage is None


def ratios(step: Step, passed: int) -> np.ndarray:
    """Return the ratios read by the surrogate for the tokens that a pass uses, (n,)."""
    o, used = step.settings.objective, recompute.used(step, passed)
    if SURROGATES[o.surrogate].ratio is not Ratio.OWN:
        return np.asarray(recompute.terms(step, passed).ratio[used])
    limit = np.inf if o.log_ratio_limit is None else o.log_ratio_limit
    return np.asarray(np.exp(np.clip((step.logp[passed] - step.old_logp)[used], -limit, limit)))


def at_one(step: Step, passed: int) -> bool:
    """Return whether every ratio of the loss is 1."""
    ratio = recompute.terms(step, passed).ratio[recompute.used(step, passed)]
    return bool((np.abs(ratio - 1) <= step.precision).all())


def band(step: Step) -> tuple[float, float]:
    """Return the range of ratios in which the clip has no effect."""
    clip = SURROGATES[step.settings.objective.surrogate].clip
    assert clip is not None
    return clip.band(step.settings.objective)


def whole_gradient(step: Step, passed: int) -> np.ndarray | None:
    """Return d loss / d logits if the loss depends on logits or full distributions, otherwise d loss / d log π.

    None if it depends on data that is not recorded.
    """
    known = step.distribution(passed) is not None and step.context is not None
    o = step.settings.objective
    if spreads(step) and (not known or (o.kl == "exact" and o.beta and step.ref_dist_logp is None)):
        return None
    if step.entropy_coefficient is not None and np.any(step.entropy_coefficient):
        return None
    return on_logits(step, passed) if known and ("logits" in step.resume or spreads(step)) else on_tokens(step, passed)


def is_still(step: Step, passed: int) -> bool:
    """Return whether the gradient of a pass is known and can be 0, given the rounding of the pushes that cancel."""
    whole = whole_gradient(step, passed)
    return whole is not None and vanishes(whole, step.precision, _lost(step, passed))


def is_moving(step: Step, passed: int) -> bool:
    """Return whether the gradient of a pass is unknown or can be other than 0, given rounding. Both this and
    :func:`is_still` are True of a gradient within rounding of the limit.
    """
    whole = whole_gradient(step, passed)
    return whole is None or not vanishes(whole, step.precision, -_lost(step, passed))


def _lost(step: Step, passed: int) -> float:
    return CANCELLED * float(np.abs(on_tokens(step, passed)).sum())


def kl_pulls(step: Step, passed: int, here: np.ndarray) -> bool:
    """Return whether a KL in the loss has a gradient on the completions ``here``, boolean (B,)."""
    o = step.settings.objective
    used = recompute.used(step, passed) & here[:, None]
    pull = recompute.token_gradient(step, passed)[1]
    if pull is not None and bool((pull[used] != 0).any()):  # a non-finite gradient counts as one
        return True
    if o.kl != "exact" or o.kl_in_reward or not o.beta:
        return False
    exact = recompute.exact_kl(step, passed)
    return exact is not None and not vanishes(exact[used], step.precision)


def entropy_pulls(step: Step, passed: int, here: np.ndarray) -> bool:
    """Return whether an entropy bonus has a gradient on the completions ``here``, boolean (B,)."""
    adapted = step.entropy_coefficient is not None and bool(np.any(step.entropy_coefficient))
    used, logp = recompute.used(step, passed) & here[:, None], step.distribution(passed)
    if not (step.settings.objective.entropy_bonus or adapted) or not used.any():
        return False
    if logp is None or step.context is None:
        return True
    at = logp[step.context[used]]
    slope = np.exp(at) * (at - (np.exp(at) * at).sum(axis=-1, keepdims=True))
    return not vanishes(slope, step.precision)
