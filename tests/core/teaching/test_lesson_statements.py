"""Statements of the lessons, checked against the training code over many seeds, without a window."""

from __future__ import annotations

import math

import numpy as np
import pytest

from grpo_core.advantages import advantages, equal_rewards
from grpo_core.bandit.simulate import updates
from grpo_core.config import Objective, Settings
from grpo_core.experiments.ensemble import Ensemble, ensembles
from grpo_core.experiments.race import race
from grpo_core.experiments.sweep import ESTIMATORS
from grpo_core.teaching.lessons.theory import bias_of, dead_share

# -- L4: build your own group ----------------------------------------------------------------------------------------

SAMPLE = Objective(std_epsilon=0.0)


def of(objective: Objective, *rewards: float) -> np.ndarray:
    return np.asarray(advantages(objective, np.array([rewards], dtype=float))[0])


def test_a_hairs_breadth_is_a_full_push_until_epsilon_bites() -> None:
    usual = Objective()
    assert of(SAMPLE, 5, 5, 5.1) == pytest.approx(of(SAMPLE, 0, 0, 100), abs=1e-9)
    assert of(usual, 5, 5, 5.1)[-1] == pytest.approx(of(usual, 0, 0, 100)[-1], rel=0.002)
    assert of(usual, 5, 5, 5.001)[-1] < 0.9 * of(usual, 5, 5, 5.1)[-1]
    assert of(Objective(std="none"), 5, 5, 5.1)[-1] == pytest.approx(0.2 / 3)


@pytest.mark.parametrize("count", [4, 8, 16])
def test_a_rare_success_is_pushed_harder_than_a_common_one(count: int) -> None:
    found = [of(Objective(), *[0.0] * (count - right), *[1.0] * right)[-1] for right in range(1, count)]
    assert found == sorted(found, reverse=True)


# -- L5: same rewards, and G = 1 --------------------------------------------------------------------------------------

COINS: dict[str, object] = {
    "task.landscape": "custom",
    "task.actions": 2,
    "task.custom": (0, 1),
    "task.levels": (0.0,) * 64,
    "task.bias_action": 2,
    "objective.beta": 0.0,
    "learner.mu": 1,
}


@pytest.mark.parametrize("size", [1, 2, 4, 8])
@pytest.mark.parametrize("chance", [0.0, 0.1, 0.3, 0.5, 0.8, 0.9, 1.0])
def test_the_share_of_dead_groups_is_the_expected_one(chance: float, size: int) -> None:
    settings = Settings().replace({**COINS, "task.bias": bias_of(chance), "learner.group_size": size})
    done = next(updates(settings, range(32)))
    dead = equal_rewards(done.batch.rewards.reshape(32, 64, size))
    expected = dead_share(chance, size)
    spread = math.sqrt(expected * (1 - expected) / dead.size)
    assert dead.mean() == pytest.approx(expected, abs=4 * spread + 1e-12)  # four standard errors of 2,048 groups
    assert dead_share(chance, size) == pytest.approx(dead_share(1 - chance, size))
    assert np.all(done.advantage.reshape(32, 64, size)[dead] == 0.0)


# -- L11: clipping -----------------------------------------------------------------------------------------------------

MANY_PASSES: dict[str, object] = {"objective.beta": 0.0, "learner.mu": 16, "optimizer.learning_rate": 1.0}
NO_CLIP: dict[str, object] = {"objective.clip_low": 1e6, "objective.clip_high": 1e6}


def test_many_passes_without_the_clip_end_on_another_action_more_often() -> None:
    both = [Settings().replace(MANY_PASSES), Settings().replace({**MANY_PASSES, **NO_CLIP})]
    first = [ensemble.measures for ensemble in ensembles(both, range(128), 1)]
    with_clip, without = ensembles(both, range(128), 20)
    spread = math.sqrt((with_clip.stuck * (1 - with_clip.stuck) + without.stuck * (1 - without.stuck)) / 128)
    assert without.stuck - with_clip.stuck > 3 * spread
    assert [ensemble["entropy"][-1].mean() for ensemble in first] == pytest.approx([2.27, 0.4], abs=0.2)


# -- L13: beta sweep ---------------------------------------------------------------------------------------------------

LARGE_GROUPS = Settings().replace({"learner.mu": 1, "learner.group_size": 64, "optimizer.learning_rate": 2.0})
OVER = (0.2, 0.5, 1.0)


def final_kl(first: int, estimator: str) -> np.ndarray:
    """Return GRPO's mean final KL at every β of ``OVER``, over sixteen seeds starting at ``first``."""
    points = [LARGE_GROUPS.replace({**ESTIMATORS[estimator], "objective.beta": beta}) for beta in OVER]
    return np.array([runs.measures["kl"][-1].mean() for runs in ensembles(points, range(first, first + 16), 400)])


@pytest.mark.parametrize("first", [0, 500])
def test_grpo_does_not_feel_beta_and_then_falls_off_a_cliff(first: int) -> None:
    flat = final_kl(first, "exact")
    assert np.all(flat[:2] > 2.2)
    assert flat[2] < 1.2
    assert np.all(np.diff(final_kl(first, "k3")) < -0.4), "with k3 there is a slope, and no cliff"


# -- L17: a fair race --------------------------------------------------------------------------------------------------

RACERS = ("GRPO (DeepSeekMath)", "REINFORCE + baseline", "REINFORCE", "PPO-clip")
OPEN = Settings().replace({"objective.beta": 0.0, "learner.mu": 1, "optimizer.learning_rate": 0.3})


def raced(first: int, fairness: str, changes: dict[str, object]) -> dict[str, Ensemble]:
    return dict(race(OPEN.replace(changes), RACERS, seeds=range(first, first + 48), updates=50, fairness=fairness))


def best(runs: Ensemble) -> tuple[float, float]:
    """Return the mean final probability of the best action, and its standard error."""
    last = runs.measures["best_prob"][-1]
    return float(last.mean()), float(last.std(ddof=1) / math.sqrt(len(last)))


def ahead(one: Ensemble, other: Ensemble) -> float:
    """Return by how many standard errors the first is ahead."""
    (a, spread), (b, other_spread) = best(one), best(other)
    return (a - b) / math.hypot(spread, other_spread)


@pytest.mark.parametrize("first", [0, 700])
def test_prompts_of_different_level_are_where_the_group_mean_earns_its_keep(first: int) -> None:
    levels: dict[str, object] = {"task.levels": (0.0, 5.0, 10.0)}
    usual = raced(first, "step_length", levels)
    grpo = usual["GRPO (DeepSeekMath)"]
    assert ahead(grpo, usual["REINFORCE + baseline"]) > 10
    assert ahead(grpo, usual["PPO-clip"]) > 4, "a critic has to learn first what the group's mean is"
    fast = raced(first, "step_length", {**levels, "learner.critic_rate": 1.0})
    assert best(fast["PPO-clip"])[0] == pytest.approx(best(grpo)[0], abs=0.05)


@pytest.mark.parametrize("first", [0, 700])
def test_at_equal_samples_reinforce_is_stuck_more_often(first: int) -> None:
    equal = raced(first, "samples", {})
    plain, grpo = equal["REINFORCE"], equal["GRPO (DeepSeekMath)"]
    assert len(plain.measures["reward"]) == 401
    assert plain.stuck - grpo.stuck > 2 * math.sqrt(plain.stuck * (1 - plain.stuck) / 48)
    assert plain.measures["reward"].mean() > grpo.measures["reward"].mean(), "it is ahead for most of the way"
