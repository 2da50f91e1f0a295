"""The expected gradient of one update over every group that could be sampled, compared with theory."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from grpo_core.bandit.layout import runs_last
from grpo_core.bandit.simulate import Batch, State, start, update
from grpo_core.bandit.streams import Streams
from grpo_core.bandit.tabular_policy import Completions, log_probs
from grpo_core.bandit.tasks import task
from grpo_core.config import Settings
from grpo_core.experiments.ensemble import ensembles
from grpo_core.experiments.sweep import ESTIMATORS

REWARDS = (0.1, 0.9, 0.4)
LOGITS = np.array([0.3, -0.2, 0.5])
POLICY = np.exp(log_probs(LOGITS, 1.0))
UPHILL = POLICY * (REWARDS - POLICY @ REWARDS)  # d E[R] / d z
PLAIN = {"objective.surrogate": "log_prob", "objective.std": "none", "objective.beta": 0.0, "learner.mu": 1}


def settings(group: int, changes: dict[str, Any], rewards: tuple[float, ...] = REWARDS) -> Settings:
    bandit = {"task.landscape": "custom", "task.actions": len(rewards), "task.custom": rewards}
    return Settings().replace({**bandit, "learner.group_size": group, **PLAIN, **changes})


def expected_step(asked: Settings, logits: np.ndarray = LOGITS) -> np.ndarray:
    """Return −E[dL/dz] (A,) over all A^G groups, each computed as one run of a single call."""
    work, size = task(asked.bandit), asked.learner.group_size
    groups = np.array(list(product(range(len(logits)), repeat=size)))  # (A^G, G)
    streams = Streams(range(len(groups)))
    fresh = start(work, streams.runs)
    at = runs_last(np.broadcast_to(logits, fresh.logits.shape))
    tokens = runs_last(groups[:, :, None])
    drawn = Completions(tokens=tokens, mask=np.ones_like(tokens, bool), context=np.zeros_like(tokens))
    batch = Batch(
        completions=drawn,
        rewards=runs_last(np.array(asked.bandit.custom)[groups]),
        attempt=np.zeros((len(groups), 1), int),
        redrawn=np.zeros(len(groups), int),
    )
    state = State(step=0, logits=at, moments=fresh.moments, critic=fresh.critic)
    gradient = update(asked, work, state, streams, batch=batch).gradient[0][:, 0]  # (A^G, A)
    chance = np.exp(log_probs(logits, asked.learner.temperature))[groups].prod(axis=-1)
    return np.asarray(-(chance[:, None] * gradient).sum(axis=0))


@pytest.mark.parametrize("group", [2, 3, 5])
@pytest.mark.parametrize("offset", [0.0, 10.0])
def test_baselines_and_what_they_leave_of_the_gradient(group: int, offset: float) -> None:
    rewards = tuple(r + offset for r in REWARDS)
    for baseline, share in (("none", 1.0), ("leave_one_out", 1.0), ("group_mean", (group - 1) / group)):
        asked = settings(group, {"objective.baseline": baseline}, rewards)
        assert expected_step(asked) == pytest.approx(share * UPHILL, abs=1e-12), baseline


def test_the_temperature_divides_the_gradient() -> None:
    hot = settings(3, {"objective.baseline": "none", "learner.temperature": 2.0})
    prob = np.exp(log_probs(LOGITS, 2.0))
    assert expected_step(hot) == pytest.approx(prob * (REWARDS - prob @ REWARDS) / 2, abs=1e-12)


def test_a_pair_divided_by_its_std_sees_ranks_alone() -> None:
    """The population std of two different rewards is half their distance, so the advantages are always +1 and −1."""
    below = np.array([[other < own for other in REWARDS] for own in REWARDS])  # (A, A)
    ranked = POLICY * (below @ POLICY - below.T @ POLICY)
    asked = {"objective.std": "population", "objective.std_epsilon": 0.0, "objective.baseline": "group_mean"}
    assert expected_step(settings(2, asked)) == pytest.approx(ranked, abs=1e-12)
    stretched = (0.39, 900.0, 0.4)
    assert expected_step(settings(2, asked, stretched)) == pytest.approx(ranked, abs=1e-9)


def test_what_each_estimator_of_the_kl_pulls_along() -> None:
    """k1: zero; k2, ratio × k3 and the exact value: −∇KL(π‖π_ref); k3: −∇KL(π_ref‖π) = π_ref − π."""
    reference = np.full(3, 1 / 3)  # the task starts uniform
    log_ratio = np.log(POLICY / reference)
    reverse = POLICY * (log_ratio - POLICY @ log_ratio)
    pulls = {"k1": 0 * POLICY, "k2": reverse, "k3": POLICY - reference, "ratio × k3": reverse, "exact": reverse}
    for name, changes in ESTIMATORS.items():
        asked = settings(2, {**changes, "objective.beta": 1.0}, (0.5, 0.5, 0.5))
        assert expected_step(asked) == pytest.approx(-pulls[name], abs=1e-12), name


def test_sampled_updates_agree_with_the_enumeration() -> None:
    asked = settings(
        4, {"objective.std": "sample", "task.bias": 0.7, "task.bias_action": 2, "optimizer.learning_rate": 1e-3}
    )
    logits = np.array([0.0, 0.7, 0.0])
    runs = next(ensembles([asked], range(4096), 1))
    moved = np.log(runs.policy[:, 0]) - log_probs(logits, 1.0)
    moved = (moved - moved.mean(axis=-1, keepdims=True)) / 1e-3  # the logits' change up to a constant
    wanted = expected_step(asked, logits)
    error = moved.std(axis=0, ddof=1) / np.sqrt(len(moved))
    assert (np.abs(moved.mean(axis=0) - (wanted - wanted.mean())) < 4 * error).all()
    assert (error < 0.1 * np.abs(wanted).max()).all(), "otherwise the comparison says nothing"
