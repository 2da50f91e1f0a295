"""Checks of the mathematics, which need no window."""

from __future__ import annotations

from itertools import islice

import numpy as np

from app.self_test.report import CheckFailed
from grpo_core import kl, recompute
from grpo_core.bandit import tabular_policy as policy
from grpo_core.bandit.gradient import logit_gradient
from grpo_core.config import Settings
from grpo_core.explain import Numbers, Quantity, explain_from
from grpo_core.learners import learner
from grpo_core.objective import evaluate
from grpo_core.plugins import package_of
from grpo_core.record import Step
from grpo_core.surrogates import SURROGATES, Path, Ratio

H = 1e-6
"""Step size of the central differences."""
SLOPE_TOLERANCE = 1e-7
SLOPED = tuple(
    name
    for name, s in SURROGATES.items()
    if not package_of(name) and (s.path is not Path.LOG_PROB or s.ratio is Ratio.NONE)
)
"""Our surrogates whose gradient is the slope of their loss.

The others treat a weight as constant, which finite differences cannot do.
"""
ESTIMATES = (*kl.ESTIMATORS, kl.EXACT)
EXPLAINED = 400
"""Maximum number of numbers of an update that are recomputed."""


def gradient_is_the_slope() -> str:
    """Compare the closed-form gradient on the logits with central differences of the loss, in the second pass."""
    worst, count = 0.0, 0
    for surrogate in SLOPED:
        for estimate in ESTIMATES:
            changes = {"objective.surrogate": surrogate, "objective.kl": estimate, "objective.beta": 0.2}
            step = list(islice(learner(Settings().replace(changes | {"learner.mu": 2})), 3))[-1]
            gap = float(np.abs(logit_gradient(step, 1) - _slope(step, 1)).max())
            if not gap <= SLOPE_TOLERANCE:
                raise CheckFailed(f"they differ by {gap:.2g} for the surrogate {surrogate} with {estimate}")
            worst, count = max(worst, gap), count + 1
    return f"{count} objectives, largest difference {worst:.1g} (allowed {SLOPE_TOLERANCE:g})"


def _slope(step: Step, passed: int) -> np.ndarray:
    """Return the derivative of the loss with respect to each logit, computed by central differences, (C, A)."""
    dist_logp = step.distribution(passed)
    if dist_logp is None:
        raise CheckFailed("the update does not hold its distributions")
    logits = step.settings.learner.temperature * dist_logp
    slope = np.zeros_like(logits)
    for place in np.ndindex(logits.shape):
        nudge = np.zeros_like(logits)
        nudge[place] = H
        slope[place] = (_loss(step, logits + nudge) - _loss(step, logits - nudge)) / (2 * H)
    return slope


def _loss(step: Step, logits: np.ndarray) -> float:
    """Return the loss of ``step``'s completions under a policy with the given logits (C, A)."""
    if step.context is None or step.ref_dist_logp is None:
        raise CheckFailed("the update does not hold its distributions")
    now = policy.log_probs(logits[None], step.settings.learner.temperature)[0]
    terms = evaluate(
        step.settings.objective,
        now[step.context, step.tokens],
        step.old_logp,
        recompute.advantage(step),
        step.mask,
        ref_logp=step.ref_logp,
        exact_kl=kl.exact(now, step.ref_dist_logp)[step.context],
        entropy=kl.entropy(now)[step.context],
    )
    return float(terms.loss)


def explained(step: Step) -> str:
    """Recompute the loss, and the numbers from which it is derived, in plain Python.

    Raises:
        CheckFailed: a recomputed number differs.
    """
    numbers = Numbers(step)
    waiting = [Quantity("loss", passed=step.passes - 1)]
    seen = set(waiting)
    for quantity in waiting:  # the list grows during the iteration
        explanation = explain_from(numbers, quantity)
        if not explanation.agrees:
            raise CheckFailed(
                f"“{explanation.title}” is {explanation.engine!r}, and {explanation.value!r} when computed again"
            )
        fresh = [one for one in explanation.inputs if one not in seen][: EXPLAINED - len(waiting)]
        seen.update(fresh)
        waiting += fresh
    return f"{len(waiting)} numbers of update {step.step} agree"
