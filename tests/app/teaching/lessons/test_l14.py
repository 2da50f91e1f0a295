"""L14: a bug in the checker is found and exploited, by keyboard and over many seeds."""

from __future__ import annotations

import numpy as np
import pytest

from grpo_core.bandit import tabular_policy as policy
from grpo_core.bandit.simulate import updates
from grpo_core.config import Settings
from grpo_core.experiments.sweep import tilt_measures
from tests.app.teaching.lessons.hands import Pupil
from tests.app.teaching.lessons.held import DOWN, UP, known, settings_of

RUNS = 24
RIGHT, TRICK = 6, 1


def trained(settings: Settings, first: int, until: int) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Return update -> (probabilities (R, A), mean reward from the checker (R,)), for R runs with seeds starting at
    ``first``.
    """
    found = {}
    for done in updates(settings, range(first, first + RUNS)):
        found[done.state.step] = np.exp(policy.log_probs(done.state.logits, 1.0))[:, 0], done.batch.rewards.mean(-1)
        if done.state.step == until:
            return found
    raise AssertionError


def tilted(settings: Settings, beta: float) -> np.ndarray:
    """Return the exact optimum with an exact KL: reference × exp(reward / β)."""
    weights = np.exp(np.array(settings.bandit.custom) / beta)
    weights[TRICK] *= np.exp(settings.bandit.bias)
    return np.asarray(weights / weights.sum())


@pytest.mark.long
def test_it_is_walked_by_keyboard_and_the_run_agrees(pupil: Pupil) -> None:
    known(pupil, "reward_hacking", {2: UP, 3: DOWN, 4: UP, 5: 1, 6: 0.66, 7: 1, 8: 0})


@pytest.mark.parametrize("first", [0, 600])
def test_the_true_reward_rises_first_and_then_collapses_while_the_proxy_climbs(first: int) -> None:
    found = trained(settings_of("reward_hacking"), first, 200)
    right = {update: found[update][0][:, RIGHT] for update in (1, 20, 100, 200)}
    assert np.all(right[20] > right[1] + 0.3)
    assert np.all(right[100] < right[20] - 0.5)
    assert np.all(right[200] < 0.05)
    proxy = [found[update][1].mean() for update in (1, 10, 20, 50, 100, 200)]
    assert np.all(np.diff(proxy) > 0)


@pytest.mark.parametrize("first", [0, 600])
def test_the_best_beta_lies_in_between_and_the_proxy_does_not_show_it(first: int) -> None:
    settings = settings_of("reward_hacking")
    betas = (0.0, 0.1, 0.2, 0.3, 0.6)
    last = [trained(settings.replace({"objective.beta": beta}), first, 200)[200] for beta in betas]
    right = np.array([p[:, RIGHT].mean() for p, _ in last])
    assert right.argmax() == betas.index(0.2)
    assert np.all(np.diff(right[:3]) > 0.08)
    assert np.all(np.diff(right[2:]) < -0.08)
    paid = [float((p @ np.array(settings.bandit.custom)).mean()) for p, _ in last]
    assert np.all(np.diff(paid) < -0.05), "what the checker pays falls all the way as β grows"
    for beta, (p, _) in list(zip(betas, last, strict=True))[1:]:
        assert p[:, RIGHT].mean() == pytest.approx(tilted(settings, beta)[RIGHT], abs=0.06)
        kl = tilt_measures(settings.replace({"objective.beta": beta}), beta)["kl"]
        assert np.log(tilted(settings, beta) / tilted(settings, 1e9)) @ tilted(settings, beta) == pytest.approx(kl)


@pytest.mark.parametrize("first", [0, 600])
def test_a_mended_checker_needs_no_beta_and_a_tie_goes_to_the_habit(first: int) -> None:
    mended, tie = settings_of("reward_hacking", 7), settings_of("reward_hacking", 8)
    assert (mended.objective.beta, tie.objective.beta) == (0.0, 0.0)
    assert np.all(trained(mended, first, 100)[100][0][:, RIGHT] > 0.95)
    habit = trained(tie, first, 100)[100][0]
    assert np.all(habit[:, RIGHT] < 0.1)
    assert np.all(habit[:, TRICK] > 0.9)
    rare = trained(tie.replace({"task.bias": -2.0}), first, 100)[100][0]
    assert np.all(rare[:, RIGHT] > 0.8), "and the other way round"
