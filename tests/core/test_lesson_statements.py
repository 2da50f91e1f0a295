"""What the lessons say, held against the code that trains, over many seeds and without a window."""

from __future__ import annotations

import math

import numpy as np
import pytest

from grpo_core import recompute
from grpo_core.advantages import advantages
from grpo_core.bandit.learner import BanditLearner
from grpo_core.config import Objective, Settings
from grpo_core.learners import learner
from grpo_core.metrics import metrics
from grpo_core.record import Step

SEEDS = range(24)


def steps(settings: Settings, updates: int) -> list[Step]:
    run = learner(settings)
    assert isinstance(run, BanditLearner)
    return [next(run) for _ in range(updates)]


def changed(**changes: object) -> Settings:
    return Settings().replace({path.replace("__", "."): value for path, value in changes.items()})


# -- L3: one update by hand ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_the_first_loss_is_zero_and_its_gradient_is_not(seed: int) -> None:
    for step in steps(changed(seed=seed, objective__beta=0.0, learner__mu=1, optimizer__learning_rate=0.5), 5):
        numbers = metrics(step)
        assert abs(numbers["loss"]) <= 1e-12
        assert np.all(recompute.terms(step, 0).ratio == 1.0)
        assert numbers["grad_norm"] > 1e-6 or numbers["dead_groups"] == 1.0
        assert recompute.advantage(step).sum() == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_other_reductions_start_where_length_and_advantage_go_together(seed: int) -> None:
    (step,) = steps(changed(seed=seed, objective__beta=0.0, learner__mu=1, task__landscape="length"), 1)
    lengths, advantage = step.mask.sum(axis=-1), recompute.advantage(step)
    found = {
        name: float(recompute.terms(step, 0, step.settings.objective.replace(reduction=name, max_tokens=8)).loss)
        for name in ("sequence", "token", "constant", "sequence_sum")
    }
    together = float((lengths * advantage).sum())
    assert found["sequence"] == pytest.approx(0, abs=1e-12)
    assert found["token"] == pytest.approx(-together / lengths.sum(), abs=1e-12)
    assert found["constant"] == pytest.approx(-together / (8 * 8), abs=1e-12)
    assert found["sequence_sum"] == pytest.approx(-together / 8, abs=1e-12)


# -- L4: build your own group ----------------------------------------------------------------------------------------

SAMPLE = Objective(std_epsilon=0.0)


def of(objective: Objective, *rewards: float) -> np.ndarray:
    return np.asarray(advantages(objective, np.array([rewards], dtype=float))[0])


@pytest.mark.parametrize("seed", SEEDS)
def test_advantages_of_a_group_sum_to_zero_and_never_pass_what_its_size_allows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rewards = rng.standard_t(1.5, size=(200, int(rng.integers(2, 17))))  # heavy tails look for the bound
    count = rewards.shape[1]
    for std, most in (("sample", (count - 1) / math.sqrt(count)), ("population", math.sqrt(count - 1))):
        found = np.asarray(advantages(SAMPLE.replace(std=std), rewards))
        assert np.abs(found.sum(axis=-1)).max() < 1e-9
        assert found.max() <= most + 1e-9
        alone = of(SAMPLE.replace(std=std), *[0.0] * (count - 1), 1.0)
        assert alone[-1] == pytest.approx(most, rel=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_dividing_by_std_is_deaf_to_size(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rewards, stretch, shift = rng.random(8), float(rng.lognormal(0, 3)), float(rng.normal(0, 50))
    assert of(SAMPLE, *(stretch * rewards + shift)) == pytest.approx(of(SAMPLE, *rewards), rel=1e-6, abs=1e-6)


def test_a_hairs_breadth_is_a_full_push_until_epsilon_bites() -> None:
    usual = Objective()
    assert of(SAMPLE, 5, 5, 5.1) == pytest.approx(of(SAMPLE, 0, 0, 100), abs=1e-9)
    assert of(usual, 5, 5, 5.1)[-1] == pytest.approx(of(usual, 0, 0, 100)[-1], rel=0.002)
    assert of(usual, 5, 5, 5.001)[-1] < 0.9 * of(usual, 5, 5, 5.1)[-1]
    assert of(Objective(std="none"), 5, 5, 5.1)[-1] == pytest.approx(0.2 / 3)


@pytest.mark.parametrize("seed", SEEDS)
def test_leave_one_out_is_the_group_mean_stretched(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rewards = rng.random(int(rng.integers(2, 17)))
    group, others = of(Objective(std="none"), *rewards), of(Objective(std="none", baseline="leave_one_out"), *rewards)
    assert others == pytest.approx(group * len(rewards) / (len(rewards) - 1))
    assert others.sum() == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("count", [4, 8, 16])
def test_a_rare_success_is_pushed_harder_than_a_common_one(count: int) -> None:
    found = [of(Objective(), *[0.0] * (count - right), *[1.0] * right)[-1] for right in range(1, count)]
    assert found == sorted(found, reverse=True)
