"""The gradient with respect to the logits, compared with finite differences of the loss."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from grpo_core import kl, recompute
from grpo_core.bandit import tabular_policy as policy
from grpo_core.bandit.gradient import logit_gradient
from grpo_core.config import Settings
from grpo_core.objective import evaluate
from grpo_core.record import Step
from grpo_core.testing.updates import trained

TASKS: dict[str, dict[str, Any]] = {
    "one token": {"task.levels": (0.0, 0.5)},
    "chain": {"task.landscape": "chain", "task.max_length": 3, "task.actions": 4},
    "length": {"task.landscape": "length", "task.max_length": 4, "objective.max_tokens": 4},
}
OBJECTIVES: dict[str, dict[str, Any]] = {
    "k1": {"objective.kl": "k1"},
    "k2": {"objective.kl": "k2"},
    "k3": {},
    "k3 times ratio": {"objective.kl_importance": True},
    "exact": {"objective.kl": "exact"},
    "exact times ratio": {"objective.kl": "exact", "objective.kl_importance": True},
    "entropy": {"objective.entropy_bonus": 0.3, "objective.beta": 0.0},
    "entropy, exact, by sequence": {
        "objective.entropy_bonus": 0.3,
        "objective.kl": "exact",
        "objective.kl_importance": True,
        "objective.level": "sequence",
        "objective.reduction": "token",
    },
    "sapo": {"objective.surrogate": "sapo"},
    "summed": {"objective.level": "sequence_sum", "objective.reduction": "sequence_sum"},
}


def a_step(**changes: Any) -> Step:
    """Return the third update of a run: away from the reference, with ratios other than 1 in its second pass."""
    base: dict[str, Any] = {
        "objective.beta": 0.5,
        "learner.mu": 2,
        "learner.temperature": 1.7,
        "optimizer.learning_rate": 0.4,
    }
    return trained(Settings().replace(base | changes), 3)


def loss_of(step: Step, passed: int, logits: np.ndarray) -> float:
    """Return the loss of a pass as a function of the logits (C, A)."""
    assert step.context is not None
    assert step.ref_dist_logp is not None
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


@pytest.mark.parametrize("passed", [0, 1])
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("task", TASKS)
def test_the_gradient_is_the_slope_of_the_loss(task: str, objective: str, passed: int) -> None:
    step = a_step(**TASKS[task], **OBJECTIVES[objective])
    distribution = step.distribution(passed)
    assert distribution is not None
    logits, h = step.settings.learner.temperature * distribution, 1e-6
    slope = np.zeros_like(logits)
    for at in np.ndindex(logits.shape):
        nudge = np.zeros_like(logits)
        nudge[at] = h
        slope[at] = (loss_of(step, passed, logits + nudge) - loss_of(step, passed, logits - nudge)) / (2 * h)
    np.testing.assert_allclose(logit_gradient(step, passed), slope, atol=2e-9)
    assert np.abs(slope).max() > 1e-3


def test_the_recorded_norm_is_that_of_the_first_pass() -> None:
    step = a_step()
    assert step.measurements["grad_norm"] == pytest.approx(float(np.linalg.norm(logit_gradient(step, 0))), rel=1e-13)


def test_another_objective_asks_what_if() -> None:
    step = a_step()
    other = recompute.under(step, step.settings.replace({"objective.beta": 0.0}))
    assert not np.allclose(logit_gradient(step, 1), logit_gradient(other, 1))
