"""Sweeps compared with theory: their runs are those of the bandit, and they converge to the predicted policy."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from grpo_core.config import PRESETS, Settings, language_settings
from grpo_core.errors import Cancelled, SettingsError
from grpo_core.experiments.ensemble import Ensemble, band, ensembles
from grpo_core.experiments.sweep import RIGHT_PULL, exponential_tilt, grid, has_optimum, resting_beta, tilt_measures
from grpo_core.learners import learner
from grpo_core.metrics import metrics
from grpo_core.teaching.lessons.experiments.by_hand import expected_step

BASE = Settings().replace({"learner.mu": 1})
THREE_ACTIONS = BASE.replace(
    {
        "task.landscape": "custom",
        "task.actions": 3,
        "task.custom": (0.1, 0.9, 0.4),
        "objective.surrogate": "log_prob",
        "objective.std": "none",
        "objective.beta": 0.5,
    }
)
"""REINFORCE on three actions with known rewards."""


def over_beta(betas: list[float], seeds: range, updates: int) -> list[Ensemble]:
    return list(ensembles(grid(BASE, {"objective.beta": betas}), seeds, updates))


def one(settings: Settings, seeds: range, updates: int) -> Ensemble:
    return next(ensembles([settings], seeds, updates))


@pytest.mark.parametrize("length", [None, 0.2])
def test_one_run_of_a_sweep_repeats_bit_for_bit_by_itself(length: float | None) -> None:
    points = grid(BASE.replace({"optimizer.step_length": length}), {"objective.beta": [0.0, 0.1, 1.0]})
    done = list(ensembles(points, [3, 4], 12))[1]
    alone = learner(done.run(1))
    for number in range(1, 13):
        step = next(alone)
        told = metrics(step)
        for name in ("kl", "entropy"):
            assert done.measures[name][number, 1] == pytest.approx(told[name], rel=1e-12), number
    last = step.distribution(step.passes)
    assert last is not None and np.array_equal(np.exp(last), done.policy[1])


def test_with_common_random_numbers_kl_falls_with_beta() -> None:
    final = [place.measures["kl"][-1] for place in over_beta([0.0, 0.1, 0.3, 1.0], range(64), 200)]
    for weaker, stronger in pairwise(final):
        gap = weaker - stronger
        assert gap.mean() > 3 * gap.std(ddof=1) / np.sqrt(len(gap))


@pytest.mark.parametrize("beta", [0.5, 1.0])
def test_reinforce_with_exact_kl_arrives_at_the_exponential_tilt(beta: float) -> None:
    objective = PRESETS["REINFORCE"].objective.replace(beta=beta, kl="exact", baseline="leave_one_out")
    settings = BASE.replace({"objective": objective, "learner.group_size": 64, "optimizer.learning_rate": 0.3})
    assert has_optimum(settings)
    done = one(settings, range(24), 500)
    wanted = exponential_tilt(settings, beta)
    distance = np.abs(done.policy.mean(axis=0) - wanted)
    error = done.policy.std(axis=0, ddof=1) / np.sqrt(24)
    assert (distance < 4 * error + 0.005).all()
    optimum = tilt_measures(settings, beta)
    assert np.median(done.measures["kl"][-1]) == pytest.approx(optimum["kl"], rel=0.1, abs=0.01)
    assert np.median(done.measures["reward"][-1]) == pytest.approx(optimum["reward"], rel=0.05)


RIGHT = {
    f"{kl}{' × ratio' * times}": {"objective.kl": kl, "objective.kl_importance": times}
    for (kl, times), right in RIGHT_PULL.items()
    if right
}


@pytest.mark.parametrize("baseline", ["none", "leave_one_out", "group_mean", "batch_mean"])
@pytest.mark.parametrize("how", [*RIGHT, "in the reward"])
def test_at_the_optimum_of_theory_the_expected_step_is_zero(how: str, baseline: str) -> None:
    """Enumerates every group: at the predicted optimum the expected step is zero, elsewhere it is not."""
    changes = RIGHT.get(how, {"objective.kl_in": "reward", "objective.kl": "k3"})
    settings = THREE_ACTIONS.replace({"learner.group_size": 3, "objective.baseline": baseline, **changes})
    assert has_optimum(settings)
    best = np.log(exponential_tilt(settings, resting_beta(settings))[0])
    assert np.abs(expected_step(settings, best)).max() < 1e-12
    assert np.abs(expected_step(settings, np.zeros(3))).max() > 0.01


def test_a_mean_that_holds_the_sample_itself_rests_at_a_weaker_tilt() -> None:
    """π_ref exp(R (G − 1) / (G β)) with the KL in the loss; π_ref exp(R / β) with the KL in the reward."""
    group = THREE_ACTIONS.replace(
        {"learner.group_size": 4, "objective.baseline": "group_mean", "objective.kl": "exact"}
    )
    best = np.exp(np.array([0.1, 0.9, 0.4]) * (4 - 1) / (4 * 0.5))
    assert np.abs(expected_step(group, np.log(best))).max() < 1e-15
    assert exponential_tilt(group, resting_beta(group))[0] == pytest.approx(best / best.sum(), abs=1e-15)
    assert resting_beta(group.replace({"objective.kl_in": "reward"})) == 0.5
    alone = group.replace({"learner.group_size": 1})
    assert has_optimum(alone) and exponential_tilt(alone, resting_beta(alone))[0] == pytest.approx(1 / 3)
    assert not has_optimum(alone.replace({"objective.kl_in": "reward"})), "then nothing moves at all"


def test_a_critic_leaves_the_kl_in_the_reward_out_so_theory_has_no_optimum() -> None:
    settings = (
        PRESETS["REINFORCE + running mean"]
        .applied_to(BASE)
        .replace({"objective.beta": 0.5, "objective.kl_in": "reward", "learner.mu": 1})
    )
    assert not has_optimum(settings)


def test_with_k3_it_arrives_at_another_point_of_its_own() -> None:
    """k3 as a loss follows KL(π_ref‖π): at its fixed point π (R − E[R]) = β (π − π_ref), which is not the tilt's
    condition.
    """
    objective = PRESETS["REINFORCE"].objective.replace(beta=0.5, kl="k3", baseline="leave_one_out")
    settings = BASE.replace({"objective": objective, "learner.group_size": 64, "optimizer.learning_rate": 0.3})
    assert not has_optimum(settings)
    done = one(settings, range(24), 500)
    pi = done.policy[:, 0].mean(axis=0)
    rewards = np.maximum(0, 1 - np.abs(np.arange(1, 11) - 7) / 5)
    force = pi * (rewards - (pi * rewards).sum()) - 0.5 * (pi - 0.1)
    assert np.abs(force).max() < 0.005
    assert np.abs(pi - exponential_tilt(settings, 0.5)[0]).max() > 0.04


def test_the_measures_are_those_of_the_policy() -> None:
    done = one(BASE, range(4), 3)
    rewards = np.maximum(0, 1 - np.abs(np.arange(1, 11) - 7) / 5)
    assert done.measures["reward"][-1] == pytest.approx((done.policy[:, 0] * rewards).sum(axis=-1))
    assert done.measures["best_prob"][-1] == pytest.approx(done.policy[:, 0, 6])
    assert done.measures["kl"][0] == pytest.approx(0, abs=1e-12)
    assert done.measures["entropy"][0] == pytest.approx(np.log(10))
    assert (np.abs(done.measures["alignment"]) <= 1 + 1e-12).all()


def test_a_step_of_one_length_has_that_length_and_one_of_zero_stays_zero() -> None:
    flat = {"task.landscape": "custom", "task.custom": (1.0,) * 10}
    still = BASE.replace({"objective.beta": 0.0, "optimizer.step_length": 0.25})
    assert one(still.replace(flat), range(3), 4).measures["kl"][-1] == pytest.approx(0, abs=1e-12)
    once = one(still, range(5), 3)
    assert once.measures["step"][1:] == pytest.approx(0.25, rel=1e-9)


def test_signal_to_noise_grows_with_the_group() -> None:
    small, large = ensembles(grid(BASE, {"learner.group_size": [2, 32]}), range(256), 1)
    assert large.signal_to_noise[0] > 2 * small.signal_to_noise[0] > 0


def test_the_band_holds_the_middle_half() -> None:
    middle, low, high = band(np.arange(101.0)[None])
    assert (middle[0], low[0], high[0]) == (50, 25, 75)


def test_a_sweep_is_interrupted_where_it_stands_and_what_was_done_stays() -> None:
    left = iter([None] * 25)

    def poll() -> None:
        if next(left, "over") == "over":
            raise Cancelled("Stopped.")

    places = ensembles(grid(BASE, {"learner.group_size": [2, 4, 8]}), [1, 2], 10, poll=poll)
    assert next(places).settings.learner.group_size == 2
    with pytest.raises(Cancelled):
        next(places)


@pytest.mark.parametrize(
    ("path", "values", "said"),
    [
        ("objective.betta", [1], "no such setting"),
        ("objective.beta", [], "at least one value"),
        ("objective.beta", [0.1, -1], "cannot be -1"),
    ],
)
def test_a_sweep_that_cannot_be_is_refused(path: str, values: list[float], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        grid(BASE, {path: values})


def test_tasks_of_several_decisions_and_language_models_are_refused() -> None:
    with pytest.raises(SettingsError, match="one decision"):
        ensembles([BASE.replace({"task.landscape": "chain"})], [1], 1)
    with pytest.raises(SettingsError, match="only the bandit"):
        ensembles([language_settings()], [1], 1)
    with pytest.raises(SettingsError, match="at least one"):
        ensembles([BASE], [], 1)
    with pytest.raises(SettingsError, match="without a KL"):
        exponential_tilt(BASE, 0.0)
