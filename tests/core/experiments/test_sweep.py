"""Sweeps against theory: the runs are those of the bandit, and they arrive where the mathematics says."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from grpo_core.config import PRESETS, Settings, language_settings
from grpo_core.errors import Cancelled, SettingsError
from grpo_core.experiments.ensemble import MEASURES, band, simulated
from grpo_core.experiments.sweep import exponential_tilt, sweep, tilt_kl
from grpo_core.learners import learner
from grpo_core.metrics import metrics

BASE = Settings().replace({"learner.mu": 1})


def test_one_run_of_a_sweep_repeats_bit_for_bit_by_itself() -> None:
    done = sweep(BASE, "objective.beta", [0.0, 0.1, 1.0], seeds=[3, 4], updates=12)
    alone = learner(done.run_settings(1, 1))
    for number in range(1, 13):
        step = next(alone)
        told = metrics(step)
        for name in ("kl", "entropy"):
            assert done.measures[name][number, 1, 1] == pytest.approx(told[name], rel=1e-12), number
    last = step.distribution(step.passes)
    assert last is not None and np.array_equal(np.exp(last), done.policy[1, 1])


def test_settings_that_cannot_run_side_by_side_give_the_same_numbers_one_after_the_other() -> None:
    together = sweep(BASE, "learner.group_size", [2, 8], seeds=[1, 2, 3], updates=5)
    for place, size in enumerate((2, 8)):
        alone = simulated(BASE.replace({"learner.group_size": size}), [1, 2, 3], 5)
        for name in MEASURES:
            assert np.array_equal(together.measures[name][:, place], alone.measures[name])


def test_with_common_random_numbers_kl_falls_with_beta() -> None:
    done = sweep(BASE, "objective.beta", [0.0, 0.1, 0.3, 1.0], seeds=range(64), updates=200)
    final = done.measures["kl"][-1]  # (K, S)
    for weaker, stronger in pairwise(final):
        gap = weaker - stronger
        assert gap.mean() > 3 * gap.std(ddof=1) / np.sqrt(len(gap))


@pytest.mark.parametrize("beta", [0.5, 1.0])
def test_reinforce_with_exact_kl_arrives_at_the_exponential_tilt(beta: float) -> None:
    objective = PRESETS["REINFORCE + baseline"].objective.replace(beta=beta, kl="exact")
    settings = BASE.replace({"objective": objective, "learner.group_size": 64, "optimizer.learning_rate": 0.3})
    done = simulated(settings, range(24), 500)
    wanted = exponential_tilt(settings, beta)
    distance = np.abs(done.policy.mean(axis=0) - wanted)
    error = done.policy.std(axis=0, ddof=1) / np.sqrt(24)
    assert (distance < 4 * error + 0.005).all()
    assert np.median(done.measures["kl"][-1]) == pytest.approx(tilt_kl(settings, beta), rel=0.1, abs=0.01)


def test_the_measures_are_those_of_the_policy() -> None:
    done = simulated(BASE, range(4), 3)
    rewards = np.maximum(0, 1 - np.abs(np.arange(1, 11) - 7) / 5)
    assert done.measures["reward"][-1] == pytest.approx((done.policy[:, 0] * rewards).sum(axis=-1))
    assert done.measures["best_prob"][-1] == pytest.approx(done.policy[:, 0, 6])
    assert done.measures["kl"][0] == pytest.approx(0, abs=1e-12)
    assert done.measures["entropy"][0] == pytest.approx(np.log(10))
    assert (np.abs(done.measures["alignment"]) <= 1 + 1e-12).all()


def test_a_step_of_one_length_has_that_length_and_one_of_zero_stays_zero() -> None:
    flat = BASE.replace({"task.landscape": "custom", "task.custom": (1.0,) * 10, "objective.beta": 0.0})
    assert simulated(flat, range(3), 4, step_length=0.5).measures["kl"][-1] == pytest.approx(0, abs=1e-12)
    once = simulated(BASE.replace({"objective.beta": 0.0}), range(5), 1, step_length=0.25)
    moved = np.log(once.policy[:, 0])
    moved = moved - moved.mean(axis=-1, keepdims=True)
    assert np.linalg.norm(moved, axis=-1) == pytest.approx(0.25, rel=1e-9)


def test_the_band_holds_the_middle_half() -> None:
    middle, low, high = band(np.arange(101.0)[None])
    assert (middle[0], low[0], high[0]) == (50, 25, 75)


def test_a_sweep_is_interrupted_where_it_stands() -> None:
    left = iter([None] * 5)

    def poll() -> None:
        if next(left, "over") == "over":
            raise Cancelled("Stopped.")

    with pytest.raises(Cancelled):
        sweep(BASE, "objective.beta", [0.0, 1.0], seeds=[1, 2], updates=50, poll=poll)


@pytest.mark.parametrize(
    ("path", "values", "said"),
    [("objective.betta", [1], "no such setting"), ("objective.beta", [], "at least one value"),
     ("objective.beta", [0.1, -1], "cannot be -1")],
)  # fmt: skip
def test_a_sweep_that_cannot_be_is_refused(path: str, values: list[float], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        sweep(BASE, path, values, seeds=[1], updates=1)


def test_tasks_of_several_decisions_and_language_models_are_refused() -> None:
    with pytest.raises(SettingsError, match="one decision"):
        simulated(BASE.replace({"task.landscape": "chain"}), [1], 1)
    with pytest.raises(SettingsError, match="only the bandit"):
        sweep(language_settings(), "objective.beta", [0.1], seeds=[1], updates=1)
    with pytest.raises(SettingsError, match="without a KL"):
        exponential_tilt(BASE, 0.0)
