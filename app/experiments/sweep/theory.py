"""The theoretical end point of a sweep's runs or, more often, the reason why there is none."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.experiments.sweep.plan import BETA, Sweep
from grpo_core.baselines import BASELINES
from grpo_core.config import Settings
from grpo_core.deviations import DEVIATIONS
from grpo_core.errors import SettingsError
from grpo_core.experiments.sweep import compared_together, has_optimum, resting_beta, tilt_measures
from grpo_core.surrogates import SURROGATES, Ratio
from grpo_core.text import tr

KNOWN: dict[str, Any] = {
    "objective.surrogate": "log_prob",
    "objective.baseline": "leave_one_out",
    "objective.std": "none",
    "objective.kl": "exact",
    "objective.kl_importance": False,
    "objective.kl_in": "loss",
    "learner.mu": 1,
    "learner.critic": False,
    "learner.resample_dead": False,
    "objective.dual_clip": None,
    "objective.entropy_bonus": 0.0,
    "optimizer.weight_decay": 0.0,
    "learner.staleness": 0,
}
"""Settings under which the optimum is known: REINFORCE with a leave-one-out baseline and the exact KL."""
FINE = 12
"""Number of points of a theoretical curve per interval of the grid."""


def optimum(sweep: Sweep, row: int = 0) -> dict[str, np.ndarray]:
    """Return the optimum along the axis: "place", "kl" in nats and "reward", (n,) each.

    The result is empty if theory provides none.
    """
    places = sweep.over.places
    intervals, optima = len(places) - 1, []
    for x in np.linspace(0, intervals, intervals * (FINE if sweep.over.path == BETA else 1) + 1):
        try:
            settings = sweep.at(places.value(float(x)), row)
        except SettingsError:
            continue
        if has_optimum(settings):
            best = tilt_measures(settings, resting_beta(settings))
            optima.append((float(x), best["kl"], best["reward"]))
    columns = np.array(optima, dtype=float).reshape(-1, 3).T
    return dict(zip(("place", "kl", "reward"), columns, strict=True))


def why_none(settings: Settings) -> str:
    """Return a message that says why theory provides no optimum for ``settings``.

    The message is empty if theory provides one (for β above 0).
    """
    goal, learner = settings.objective, settings.learner
    plain = SURROGATES[goal.surrogate].ratio is Ratio.NONE
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
    if why or has_optimum(settings.replace({BETA: max(goal.beta, 0.1)})):
        return why
    ways = {
        "k1": tr("No exact optimum: k1 in the loss has no gradient on average."),
        "k2": tr("No exact optimum: {kl} in the loss is reweighted.").format(kl=goal.kl),
        "k3": tr("No exact optimum: k3 in the loss pulls along KL(π_ref‖π)."),
    }
    return ways[goal.kl]
