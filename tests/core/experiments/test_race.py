"""The fair race: what has to coincide does, and what has to break breaks."""

from __future__ import annotations

import numpy as np
import pytest

from grpo_core.config import Settings
from grpo_core.errors import SettingsError
from grpo_core.experiments.race import LOCAL_PEAK, SIX, race

BASE = Settings().replace({"learner.mu": 1, "objective.beta": 0.0})


def test_six_algorithms_race_over_the_same_seeds() -> None:
    lanes = race(BASE, updates=20)
    assert [lane.name for lane in lanes] == list(SIX)
    for lane in lanes:
        assert lane.measures["reward"].shape == (21, 64)
        assert lane.samples.tolist() == list(range(0, 21 * 8, 8))
        assert 0 <= lane.stuck <= 1 and lane.wrong_way.shape == (20,)


def test_at_equal_step_length_dividing_by_the_std_changes_nothing_with_one_prompt() -> None:
    names = ("GRPO (TRL 1.16 defaults)", "Dr. GRPO")
    with_std, without = race(BASE, names, seeds=range(8), updates=30, fairness="step_length")
    assert np.allclose(with_std.measures["reward"], without.measures["reward"], atol=1e-9)


def test_a_constant_added_to_all_rewards_breaks_plain_reinforce_alone() -> None:
    names = ("REINFORCE", "REINFORCE + baseline", "GRPO (DeepSeekMath)")
    usual = race(BASE, names)
    lifted = race(BASE.replace({"task.levels": (10.0,)}), names)
    for name, before, after in zip(names, usual, lifted, strict=True):
        lost = before.measures["reward"][-1] - (after.measures["reward"][-1] - 10)  # (S,), the same random numbers
        if name == "REINFORCE":
            assert lost.mean() > 4 * lost.std(ddof=1) / np.sqrt(len(lost))
            assert after.stuck > before.stuck + 0.4
            assert after.wrong_way.mean() > before.wrong_way.mean() + 0.1
        else:
            assert np.abs(lost).max() < 1e-6, name


def test_at_equal_samples_every_algorithm_draws_as_many() -> None:
    lanes = race(BASE, ("REINFORCE", "GRPO (DeepSeekMath)"), seeds=range(4), updates=10, fairness="samples")
    assert [lane.samples[-1] for lane in lanes] == [80, 80]
    assert [lane.settings.learner.group_size for lane in lanes] == [1, 8]


def test_from_a_start_that_leans_towards_the_lower_peak_small_steps_get_stuck() -> None:
    (stuck,) = race(BASE.replace(LOCAL_PEAK), ("Dr. GRPO",))
    (free,) = race(BASE.replace({"task.landscape": "double_peak", "task.half_width": 2.5}), ("Dr. GRPO",), updates=400)
    assert stuck.stuck > 0.5 > free.stuck


def test_a_race_that_cannot_be_is_refused() -> None:
    with pytest.raises(SettingsError, match="allowed is one of updates, samples"):
        race(BASE, fairness="luck")
    with pytest.raises(SettingsError, match="no such preset"):
        race(BASE, ("PPO",))
