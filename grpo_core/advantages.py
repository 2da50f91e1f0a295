"""Advantages from rewards: subtract a baseline, then divide by a measure of spread.

Group-relative advantage, DeepSeekMath (arXiv:2402.03300) section 4.1.2: A_i = (r_i − mean(r)) / std(r). The paper
specifies neither the degrees of freedom nor an epsilon; both are settings here. A group is the G completions of one
prompt. The baselines are tabulated in ``baselines.py``, the divisors in ``deviations.py``.
"""

from __future__ import annotations

from typing import Literal

from grpo_core.arrays import Array, array_namespace, at_least_one, constant, is_zero, numeric
from grpo_core.baselines import BASELINES
from grpo_core.config import Objective
from grpo_core.deviations import DEVIATIONS
from grpo_core.errors import SettingsError
from grpo_core.shapes import check_rewards, check_steps, check_values
from grpo_core.text import tr

EQUAL = 1e-12
"""Spread, relative to max(1, |r|), up to which rewards count as equal, because rounding errors are not a signal."""


def advantages(
    objective: Objective,
    rewards: Array,
    *,
    baseline: Array | None = None,
    kl: Array | None = None,
    all_scored: bool = False,
) -> Array:
    """Return the advantage of every completion.

    Args:
        objective: ``baseline``, ``std``, ``std_epsilon``; with ``kl_in = "reward"`` also ``beta``.
        rewards: (..., P, G). NaN (unscored, or an empty slot of a ragged group) is excluded from every mean and std.
        baseline: for ``baseline = "given"``, broadcast to (..., P, G): a critic's value of each prompt, for example.
        kl: (..., P, G), the completion's summed k1, subtracted times beta when ``kl_in = "reward"``; leading axes can
            be missing, or 1, if runs share it.
        all_scored: whether the caller knows that no reward is NaN, which saves the check.

    Returns:
        (..., P, G); 0 where the reward is NaN. With ``group_mean`` and ``leave_one_out``, groups whose rewards are
        equal and groups of one give exactly 0; with the other baselines a zero or undefined std divides by 1.

    Raises:
        ShapeError: the baseline or the KL does not fit the rewards.
        SettingsError: the baseline or the KL that the objective needs is missing.
    """
    check_rewards(rewards, baseline, kl)
    xp = array_namespace(rewards)
    if objective.kl_in_reward and kl is not None:
        rewards = rewards - numeric(objective.beta, rewards) * kl
    elif objective.kl_in_reward and not is_zero(objective.beta):
        raise SettingsError("kl", None, tr("kl_in = “reward” needs the summed k1 of every completion"))
    r, scored, n = _scored(xp, rewards, all_scored)
    equal = _equal(xp, r, scored)  # (..., P, 1)
    compared_with = BASELINES[objective.baseline]
    centred = r - compared_with.value(xp, r, n, baseline)
    if scored is not None:
        centred = xp.where(scored, centred, 0.0)
    if compared_with.within_group:
        centred = xp.where(equal, 0.0, centred)
    from_mean = centred if compared_with.mean == "group" else None
    deviation = DEVIATIONS[objective.std]
    compared = centred if deviation.of_centred else r
    return centred / _scale(xp, objective, compared, scored, n, equal, from_mean)


def step_scores(objective: Objective, step_rewards: Array) -> Array:
    """Normalise the rewards of reasoning steps, DeepSeekMath section 4.1.3, by the mean and std of all steps of the
    group.

    Args:
        step_rewards: (..., P, G, T), the reward of the step that ends with each token; NaN where no step ends.

    Returns:
        (..., P, G, T); 0 where no step ends. With ``group_mean``, a group whose steps all have the same reward gives
        exactly 0.

    Raises:
        ShapeError: there are fewer axes.
    """
    check_steps(step_rewards)
    xp = array_namespace(step_rewards)
    shape = step_rewards.shape
    flat = xp.reshape(step_rewards, (*shape[:-2], shape[-2] * shape[-1]))
    return xp.reshape(advantages(objective, flat), shape)


def from_here_on(scores: Array) -> Array:
    """Return the advantage of every token, DeepSeekMath section 4.1.3: the sum of the normalised rewards of the steps
    that end at that token or later. (..., T) -> (..., T).
    """
    xp = array_namespace(scores)
    return xp.flip(xp.cumulative_sum(xp.flip(scores, axis=-1), axis=-1), axis=-1)


def gae(rewards: Array, values: Array, mask: Array, *, gamma: float, lam: float) -> Array:
    """Return the generalised advantage estimate, arXiv:1506.02438 equation 16: A_t = Σ_l (γλ)^l δ_{t+l}.

    Masked positions are skipped, wherever they are: the successor of a token is the next unmasked token.

    Args:
        rewards: (..., B, T), the reward received at each token.
        values: (..., B, T), the critic's value before each token; the value after the last is 0.
        mask: (..., B, T), boolean.
        gamma: discount, 0 to 1.
        lam: λ, 0 (one step) to 1 (Monte Carlo).

    Returns:
        (..., B, T), 0 where masked.

    Raises:
        ShapeError: rewards or mask do not fit the values; their leading axes can be missing, or 1.
    """
    check_values(rewards, values, mask)
    xp = array_namespace(rewards, values, mask)
    rewards, values = xp.where(mask, rewards, 0.0), xp.where(mask, values, 0.0)
    next_value = running = xp.zeros_like(values[..., 0])
    backwards = []
    for t in range(values.shape[-1] - 1, -1, -1):
        here = mask[..., t]
        delta = rewards[..., t] + gamma * next_value - values[..., t]
        running = xp.where(here, delta + gamma * lam * running, running)
        next_value = xp.where(here, values[..., t], next_value)
        backwards.append(xp.where(here, running, 0.0))
    return xp.stack(backwards[::-1], axis=-1)


def equal_rewards(rewards: Array) -> Array:
    """Mark the groups whose scored rewards are all equal. (..., P, G) -> boolean (..., P); NaN rewards are ignored.

    Raises:
        ShapeError: there are fewer than two axes.
    """
    check_rewards(rewards)
    xp = array_namespace(rewards)
    r, scored, _ = _scored(xp, rewards)
    return _equal(xp, r, scored)[..., 0]


def _scored(xp: Array, rewards: Array, all_scored: bool = False) -> tuple[Array, Array | None, Array | float]:
    """Replace NaN rewards (..., P, G) with 0. Also return the mask of scored ones (None if all are) and the number
    scored in each group, (..., P, 1), or a single number if all are.
    """
    unscored = None if all_scored else xp.isnan(rewards)
    if unscored is None or not bool(xp.any(unscored)):
        return rewards, None, float(rewards.shape[-1])
    scored = ~unscored
    return xp.where(scored, rewards, 0.0), scored, _sum(xp, xp.astype(scored, rewards.dtype))


def _sum(xp: Array, x: Array) -> Array:
    return xp.sum(x, axis=-1, keepdims=True)


def _equal(xp: Array, r: Array, scored: Array | None) -> Array:
    """Return whether a group's rewards are equal, (..., P, 1). They are also equal if the group has at most one."""
    above, below = (r, r) if scored is None else (xp.where(scored, r, -xp.inf), xp.where(scored, r, xp.inf))
    high, low = xp.max(above, axis=-1, keepdims=True), xp.min(below, axis=-1, keepdims=True)
    size = xp.maximum(high, -low)  # the larger of |high| and |low|, since high is not below low
    return high - low <= EQUAL * at_least_one(size)


def _scale(
    xp: Array,
    objective: Objective,
    r: Array,
    scored: Array | None,
    n: Array | float,
    equal: Array,
    from_mean: Array | None,
) -> Array | float:
    """Return the divisor of the centred rewards, (..., P, 1): 1 where the std is zero or undefined, or the mean that
    divides is not above 0.

    ``from_mean`` is the rewards minus their group's mean, if the caller has already computed them.
    """
    deviation = DEVIATIONS[objective.std]
    if not deviation.divides:
        return 1.0
    if deviation.of_mean:
        mean = _sum(xp, r) / at_least_one(n)
        return xp.where(equal | (mean <= 0), 1.0, mean + numeric(objective.std_epsilon, r))
    if deviation.of_batch:
        shape = (*r.shape[:-2], 1, r.shape[-2] * r.shape[-1])
        r, scored = xp.reshape(r, shape), None if scored is None else xp.reshape(scored, shape)
        n = float(shape[-1]) if constant(n) else xp.sum(n, axis=-2, keepdims=True)
        equal, from_mean = _equal(xp, r, scored), None
    if from_mean is None:
        from_mean = r - _sum(xp, r) / at_least_one(n)
        if scored is not None:
            from_mean = xp.where(scored, from_mean, 0.0)
    freedom = n - deviation.ddof
    undefined = equal if constant(freedom) and freedom >= 1 else equal | (freedom < 1)
    std = xp.sqrt(_sum(xp, from_mean**2) / at_least_one(freedom))
    return xp.where(undefined, 1.0, std + numeric(objective.std_epsilon, r))


NEAR = 1e-6
"""Relative distance from the highest or lowest reward that counts as rounding error."""

Sort = Literal["right", "wrong", "same"]


def sort_of(reward: float, low: float = 0.0, high: float = 1.0) -> Sort:
    """Classify a group whose rewards are all equal. ``low`` and ``high`` are the smallest and largest possible reward.

    If an entire run has a single reward value, the range is unknown: 1 then counts as right, and 0 or less as wrong.
    """
    near = NEAR * max(abs(low), abs(high), 1e-12)
    if high - low <= near:
        return "right" if abs(reward - 1.0) <= NEAR else "wrong" if reward <= 0 else "same"
    return "right" if reward >= high - near else "wrong" if reward <= low + near else "same"
