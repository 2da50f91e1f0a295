"""Advantages on numbers that can be checked by hand, and the exact zeros."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from grpo_core.advantages import advantages, equal_rewards, gae
from grpo_core.arrays import to_numpy
from grpo_core.config import Objective
from grpo_core.errors import SettingsError
from grpo_core.testing import cases

BASELINES = ("group_mean", "leave_one_out", "batch_mean", "none")
STDS = ("sample", "population", "batch", "none")


def found(rewards: Any, **switches: Any) -> np.ndarray:
    return np.asarray(advantages(Objective(std_epsilon=0.0, **switches), np.array(rewards, dtype=float)))


ONE_OF_EIGHT = [[1, 0, 0, 0, 0, 0, 0, 0]]


def test_one_success_in_eight() -> None:
    # mean 1/8; sample std √((49/64 + 7/64) / 7) = 0.353553: 0.875 / 0.353553 = 2.4749, −0.125 / 0.353553 = −0.3536
    assert found(ONE_OF_EIGHT)[0].tolist() == pytest.approx([2.4749] + [-0.3536] * 7, abs=5e-5)
    # population std √(56/64 / 8) = 0.330719: 2.6458 = √7 and −0.3780
    assert found(ONE_OF_EIGHT, std="population")[0].tolist() == pytest.approx([2.6458] + [-0.3780] * 7, abs=5e-5)


def test_the_epsilon_is_added_to_the_standard_deviation() -> None:
    objective = Objective(std_epsilon=0.1)
    value = advantages(objective, np.array(ONE_OF_EIGHT, dtype=float))[0, 0]
    assert value == pytest.approx(0.875 / (math.sqrt(0.125) + 0.1))


@pytest.mark.parametrize("gap", [1e-9, 1.0, 1e6])
@pytest.mark.parametrize("size", [2, 5, 16])
def test_the_largest_advantage_depends_on_the_group_size_alone(size: int, gap: float) -> None:
    rewards = [[gap] + [0.0] * (size - 1)]
    assert found(rewards).max() == pytest.approx((size - 1) / math.sqrt(size))
    assert found(rewards, std="population").max() == pytest.approx(math.sqrt(size - 1))


def test_the_batch_std_is_that_of_the_raw_rewards() -> None:
    # rewards 1 0 5 4: mean 2.5, squares 2.25 + 6.25 + 6.25 + 2.25 = 17, / 3, root = 2.380476; centred by group ±0.5
    assert found([[1, 0], [5, 4]], std="batch")[1].tolist() == pytest.approx(
        [0.5 / 2.380476, -0.5 / 2.380476], rel=1e-6
    )
    # groups equal within, different between: std 2.31 but nothing to say
    assert (found([[1, 1], [5, 5]], std="batch") == 0).all()


def test_a_given_baseline_is_subtracted() -> None:
    objective = Objective(baseline="given", std="none")
    rewards = np.array([[1.0, 0.0], [5.0, 4.0]])
    assert advantages(objective, rewards, baseline=np.array([[0.5], [4.0]])).tolist() == [[0.5, -0.5], [1.0, 0.0]]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("rewards", [[0.7] * 7, [1 / 3] * 8, [0.1] * 8, [1e4] * 3, [0.0] * 4, [0.3]])
@pytest.mark.parametrize("std", STDS)
def test_equal_rewards_and_groups_of_one_give_exactly_zero(rewards: list[float], dtype: Any, std: str) -> None:
    for baseline in ("group_mean", "leave_one_out"):
        for epsilon in (0.0, 1e-9):
            objective = Objective(baseline=baseline, std=std, std_epsilon=epsilon)
            value = advantages(objective, np.array([rewards, rewards], dtype=dtype))
            assert (value == 0).all()
            assert value.dtype == dtype
    assert equal_rewards(np.array([rewards], dtype=dtype)).tolist() == [True]


def test_rewards_that_differ_by_rounding_are_equal_and_by_more_are_not() -> None:
    assert (found([[0.1 + 0.2, 0.3]]) == 0).all()
    assert found([[0.3, 0.3 + 1e-11]]).max() > 0.7
    assert (found([[1e6, 1e6 + 1e-7]]) == 0).all()
    assert found([[1e6, 1e6 + 1e-5]]).max() > 0.7


def test_with_other_baselines_a_zero_or_undefined_std_divides_by_one() -> None:
    for std in ("sample", "population"):
        assert found([[2, 2, 2]], baseline="none", std=std).tolist() == [[2, 2, 2]]
        assert found([[2.0], [5.0]], baseline="batch_mean", std=std).tolist() == [[-1.5], [1.5]]
    assert found([[3.0]], baseline="none", std="batch").tolist() == [[3.0]]
    assert advantages(Objective(baseline="none", std_epsilon=0.5), np.array([[2.0, 2.0]])).tolist() == [[2.0, 2.0]]


def test_an_unscored_reward_leaves_mean_and_std_and_has_advantage_zero() -> None:
    for baseline in BASELINES:
        for std in STDS:
            ragged = found([[1, np.nan, 0, 4], [np.nan, 2, 7, np.nan]], baseline=baseline, std=std)
            assert (ragged[[0, 1, 1], [1, 0, 3]] == 0).all()
            if "batch" not in (baseline.split("_")[0], std):
                np.testing.assert_allclose(ragged[0, [0, 2, 3]], found([[1, 0, 4]], baseline=baseline, std=std)[0])
                np.testing.assert_allclose(ragged[1, 1:3], found([[2, 7]], baseline=baseline, std=std)[0])


def test_a_batch_counts_only_scored_rewards() -> None:
    # scored: 1 0 5, mean 2, sample std √((1 + 4 + 9) / 2) = √7
    value = found([[1, 0], [5, np.nan]], baseline="batch_mean", std="batch")
    np.testing.assert_allclose(value, np.array([[-1, -2], [3, 0]]) / math.sqrt(7))


def test_fewer_than_two_scored_rewards_carry_no_signal() -> None:
    for baseline in ("group_mean", "leave_one_out"):
        assert (found([[np.nan, 3.0, np.nan], [np.nan] * 3], baseline=baseline) == 0).all()


def test_a_kl_in_the_loss_leaves_the_rewards_alone() -> None:
    value = advantages(Objective(std="none", beta=0.5), np.array([[1.0, 0.0]]), kl=np.array([[2.0, 4.0]]))
    assert value.tolist() == [[0.5, -0.5]]


def test_what_is_missing_is_named() -> None:
    rewards = np.array([[1.0, 0.0]])
    with pytest.raises(SettingsError) as error:
        advantages(Objective(baseline="given"), rewards)
    assert error.value.field == "baseline"
    for beta in (0.1, np.full((2, 1, 1), 0.1)):
        with pytest.raises(SettingsError) as error:
            advantages(Objective(kl_in="reward").replace(beta=beta), rewards)
        assert error.value.field == "kl"
    assert advantages(Objective(kl_in="reward", beta=0.0, std="none"), rewards).tolist() == [[0.5, -0.5]]


@pytest.mark.parametrize("backend", cases.BACKENDS)
def test_every_library_gives_the_same_numbers_with_runs_in_front(backend: str) -> None:
    rng = np.random.default_rng(1)
    rewards = rng.normal(size=(2, 3, 4))
    rewards[0, 0], rewards[1, 1, 2], rewards[1, 2, 1:] = 0.7, np.nan, np.nan
    extra = {"kl": rng.normal(size=(2, 3, 4)), "baseline": rng.normal(size=(2, 3, 1))}
    for baseline in (*BASELINES, "given"):
        for std in STDS:
            objective = Objective(baseline=baseline, std=std, kl_in="reward")
            expected = np.stack(
                [advantages(objective, rewards[r], **{n: x[r] for n, x in extra.items()}) for r in (0, 1)]
            )
            there = cases.on(backend, extra | {"rewards": rewards})
            value = to_numpy(advantages(objective, there.pop("rewards"), **there))
            np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("backend", cases.BACKENDS)
def test_fields_with_one_value_a_run_equal_separate_calls(backend: str) -> None:
    rng = np.random.default_rng(2)
    rewards, kl = rng.normal(size=(3, 2, 4)), rng.normal(size=(3, 2, 4))
    columns = {"beta": [0.0, 0.1, 1.0], "std_epsilon": [0.0, 0.1, 0.5]}
    arrays = {name: cases.converter(backend)(np.array(v).reshape(3, 1, 1)) for name, v in columns.items()}
    there = cases.converter(backend)
    whole = to_numpy(advantages(Objective(kl_in="reward", **arrays), there(rewards), kl=there(kl)))
    for run in range(3):
        objective = Objective(kl_in="reward", beta=columns["beta"][run], std_epsilon=columns["std_epsilon"][run])
        alone = advantages(objective, rewards[run], kl=kl[run])
        np.testing.assert_allclose(whole[run], alone, rtol=1e-12)


@pytest.mark.parametrize("baseline", BASELINES)
@pytest.mark.parametrize("std", STDS)
def test_an_unscored_reward_of_another_run_changes_no_bit(baseline: str, std: str) -> None:
    rewards = np.random.default_rng(3).random((2, 3, 5))
    alone = found(rewards[:1], baseline=baseline, std=std)
    rewards[1, 0, 2] = np.nan
    np.testing.assert_array_equal(found(rewards, baseline=baseline, std=std)[:1], alone)


# -- generalised advantage estimation ----------------------------------------------------------------------------------

REWARDS = np.array([[0.0, 0.0, 1.0]])
VALUES = np.array([[0.5, 0.4, 0.7]])
EVERY = np.full((1, 3), True)


def test_the_last_token_sees_the_reward_and_the_others_look_ahead() -> None:
    # γ = 0.9, λ = 0.5: δ = 0.9·0.4 − 0.5 = −0.14, 0.9·0.7 − 0.4 = 0.23, 1 − 0.7 = 0.3
    # A3 = 0.3; A2 = 0.23 + 0.45·0.3 = 0.365; A1 = −0.14 + 0.45·0.365 = 0.02425
    assert gae(REWARDS, VALUES, EVERY, gamma=0.9, lam=0.5)[0].tolist() == pytest.approx([0.02425, 0.365, 0.3])


def test_lambda_zero_is_one_step_and_lambda_one_the_whole_return() -> None:
    np.testing.assert_allclose(gae(REWARDS, VALUES, EVERY, gamma=1.0, lam=0.0), [[-0.1, 0.3, 0.3]], atol=1e-15)
    # γ = λ = 1: return to go minus value
    np.testing.assert_allclose(gae(REWARDS, VALUES, EVERY, gamma=1.0, lam=1.0), [[0.5, 0.6, 0.3]], atol=1e-15)


@pytest.mark.parametrize("places", [[0, 1, 2], [2, 3, 4], [0, 2, 4], [1, 2, 4]])
def test_masked_places_are_skipped_wherever_they_stand(places: list[int]) -> None:
    mask = np.full((1, 5), False)
    rewards, values = np.full((1, 5), np.nan), np.full((1, 5), np.inf)
    mask[0, places], rewards[0, places], values[0, places] = True, REWARDS, VALUES
    found = gae(rewards, values, mask, gamma=0.9, lam=0.5)
    assert found[0, places].tolist() == pytest.approx([0.02425, 0.365, 0.3])
    assert (found[~mask] == 0).all()


@pytest.mark.parametrize("backend", cases.BACKENDS)
def test_every_library_and_every_run_gives_the_sum_of_the_definition(backend: str) -> None:
    rng = np.random.default_rng(0)
    rewards, values = rng.normal(size=(2, 3, 6)), rng.normal(size=(2, 3, 6))
    mask = rng.random((2, 3, 6)) < 0.7
    mask[0, 0] = False
    expected = np.zeros_like(values)
    for row in np.ndindex(2, 3):
        real = np.flatnonzero(mask[row])
        for i, t in enumerate(real):
            for step, u in enumerate(real[i:]):
                after = real[i + step + 1] if i + step + 1 < len(real) else None
                delta = rewards[row][u] + 0.9 * (0.0 if after is None else values[row][after]) - values[row][u]
                expected[row][t] += (0.9 * 0.8) ** step * delta
    there = cases.converter(backend)
    found = to_numpy(gae(there(rewards), there(values), there(mask), gamma=0.9, lam=0.8))
    np.testing.assert_allclose(found, expected, atol=1e-14)
