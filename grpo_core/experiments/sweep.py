"""Sweeps: training with the same seeds at every point of a grid of settings, and the optimum in theory."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from grpo_core import kl
from grpo_core.bandit.tasks import task
from grpo_core.baselines import BASELINES
from grpo_core.config import Settings, described_at
from grpo_core.deviations import DEVIATIONS
from grpo_core.errors import SettingsError
from grpo_core.experiments.ensemble import action_rewards
from grpo_core.surrogates import SURROGATES, Ratio
from grpo_core.text import tr

BETAS = (0.0, 0.01, 0.02, 0.04, 0.08, 0.15, 0.25, 0.4, 0.6, 0.8, 1.0)
"""Values of β for a sweep, from zero to the strength of the reward itself."""

ESTIMATORS: dict[str, dict[str, Any]] = {
    "k1": {"objective.kl": "k1", "objective.kl_importance": False},
    "k2": {"objective.kl": "k2", "objective.kl_importance": False},
    "k3": {"objective.kl": "k3", "objective.kl_importance": False},
    "ratio × k3": {"objective.kl": "k3", "objective.kl_importance": True},
    "exact": {"objective.kl": "exact", "objective.kl_importance": False},
}
"""Estimators of the KL in the loss: name -> settings. k1 to k3: Schulman 2020."""


def grid(settings: Settings, axes: Mapping[str, Sequence[Any]]) -> list[Settings]:
    """Return ``settings`` at every point of a grid. The last axis varies fastest.

    Args:
        axes: dotted path of a setting, such as ``objective.beta`` -> its values; at least one axis.

    Raises:
        SettingsError: there is no such setting, it has no values, or a value is not allowed.
    """
    for path, values in axes.items():
        try:
            described_at(path)
        except KeyError:
            raise SettingsError(path, None, tr("there is no such setting")) from None
        if not values:
            raise SettingsError(path, None, tr("a sweep needs at least one value"))
    return [settings.replace(dict(zip(axes, values, strict=True))) for values in product(*axes.values())]


RIGHT_PULL = {
    (kl.EXACT, False): True,
    (kl.EXACT, True): True,
    **{(name, True): each.unbiased for name, each in kl.ESTIMATORS.items()},
    **{(name, False): each.pulls_back for name, each in kl.ESTIMATORS.items()},
}
"""(estimator, multiplied by the ratio) -> whether its expected on-policy gradient as a loss is that of KL(π‖π_ref)."""


def has_optimum(settings: Settings) -> bool:
    """Return whether theory predicts the limit of training (:func:`why_no_optimum`)."""
    return not why_no_optimum(settings) and settings.objective.beta > 0


def why_no_optimum(settings: Settings) -> str:
    """Return a message that says why theory does not predict the limit of training, or an empty string if it does for
    β above 0: REINFORCE with a KL whose gradient is that of KL(π‖π_ref).

    On-policy, these are the estimators of :data:`RIGHT_PULL` in the loss. In the reward the KL is always k1, regardless
    of the chosen estimator, and a critic's advantage does not include it. Advantages must not be divided by a
    deviation, which would change the balance of reward and KL differently in every group. A mean that includes the
    sample itself changes this balance equally in all groups (:func:`resting_beta`). There must be no other term in the
    loss, and every drawn group must count.
    """
    goal, learner = settings.objective, settings.learner
    plain, pulls = SURROGATES[goal.surrogate].ratio is Ratio.NONE, RIGHT_PULL[goal.kl, goal.kl_importance]
    reasons = (
        (settings.is_language, tr("No exact optimum: for a language model it is a sum over all completions.")),
        (
            DEVIATIONS[goal.std].divides,
            tr("No exact optimum: REINFORCE divides by the std.")
            if plain
            else tr("No exact optimum: GRPO divides by the std."),
        ),
        (not plain, tr("No exact optimum: it is drawn for plain REINFORCE only.")),
        (bool(goal.entropy_bonus), tr("No exact optimum: the entropy bonus pulls as well.")),
        (learner.resample_dead, tr("No exact optimum: groups that are drawn again are not a fair sample.")),
        (bool(learner.staleness), tr("No exact optimum: an older policy samples.")),
        (bool(settings.optimizer.weight_decay), tr("No exact optimum: the weight decay pulls as well.")),
        (learner.mu != 1, tr("No exact optimum: at μ above 1 later passes are off-policy.")),
        (
            goal.kl_in_reward and BASELINES[goal.baseline].from_critic,
            tr("No exact optimum: a critic's advantage leaves out the KL in the reward."),
        ),
        (
            goal.kl_in_reward and bool(BASELINES[goal.baseline].mean) and compared_together(settings) == 1,
            tr("No exact optimum: one completion compared with itself has no advantage."),
        ),
    )
    why = next((reason for true, reason in reasons if true), "")
    if why or goal.kl_in_reward or pulls:
        return why
    ways = {
        "k1": tr("No exact optimum: k1 in the loss has no gradient on average."),
        "k2": tr("No exact optimum: {kl} in the loss is reweighted.").format(kl=goal.kl),
        "k3": tr("No exact optimum: k3 in the loss pulls along KL(π_ref‖π)."),
    }
    return ways[goal.kl]


def compared_together(settings: Settings) -> int:
    """Return the number of rewards that the baseline averages: those of a group or batch. 1 if it is not a mean."""
    size = settings.learner.group_size
    match BASELINES[settings.objective.baseline].mean:
        case "group":
            return size
        case "batch":
            return size * settings.trained.prompts
        case _:
            return 1


def resting_beta(settings: Settings) -> float:
    """Return the β > 0 of the exponential tilt at which training converges. Infinite if only the KL has a gradient.

    A baseline that is a mean of n rewards including the sample's own scales the reward's expected gradient by (n − 1) /
    n. With a KL in the loss the result is therefore β n / (n − 1). A KL in the reward is scaled by the same factor, so
    that the result is β.
    """
    goal = settings.objective
    if not BASELINES[goal.baseline].mean or goal.kl_in_reward:
        return goal.beta
    n = compared_together(settings)
    return goal.beta * n / (n - 1) if n > 1 else math.inf


def exponential_tilt(settings: Settings, beta: float) -> np.ndarray:
    """Return the policy that maximises E[R] − β KL(π‖π_ref): π ∝ π_ref exp(R / β), (C, A).

    This is the limit of REINFORCE with the exact KL in its loss (Ziebart 2010; DPO, arXiv:2305.18290, equation 4).

    Raises:
        SettingsError: β is 0, or the task's rewards are not defined per action.
    """
    rewards, start = action_rewards(settings), task(settings.bandit).start
    if beta <= 0:
        raise SettingsError("objective.beta", beta, tr("without a KL there is no optimum inside the simplex"))
    logits = start.reshape(rewards.shape) / settings.learner.temperature + rewards / beta
    logits = logits - logits.max(axis=-1, keepdims=True)
    return np.asarray(np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True))


def tilt_measures(settings: Settings, beta: float) -> dict[str, float]:
    """Return KL(π‖π_ref) in nats and the expected reward of the exponential tilt, averaged over the prompts."""
    best = exponential_tilt(settings, beta)
    start = task(settings.bandit).start.reshape(best.shape) / settings.learner.temperature
    reference = start - np.log(np.exp(start).sum(axis=-1, keepdims=True))
    divergence = kl.exact(np.log(np.maximum(best, 1e-300)), reference)
    return {"kl": float(divergence.mean()), "reward": float((best * action_rewards(settings)).sum(axis=-1).mean())}
