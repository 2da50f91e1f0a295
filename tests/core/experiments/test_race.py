"""The fair race: runs that must coincide do, and runs that must differ do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from grpo_core.claims.comparison import Lead, Trained
from grpo_core.config import Settings
from grpo_core.errors import SettingsError
from grpo_core.experiments.outcome import outcome, trained
from grpo_core.experiments.race import LOCAL_PEAK, MU, SIX, differing, entered, race
from grpo_core.learners import learner

BASE = Settings().replace({"learner.mu": 1, "objective.beta": 0.0})


def test_six_algorithms_race_over_the_same_seeds() -> None:
    lanes = dict(race(BASE, updates=20))
    assert tuple(lanes) == SIX
    for lane in lanes.values():
        assert lane.measures["reward"].shape == (21, 64)
        assert lane.samples.tolist() == list(range(0, 21 * 8, 8))
        assert lane.signal_to_noise.shape == (20,)
        assert 0 <= lane.stuck <= 1 and lane.wrong_way.shape == (20,)


def test_all_make_as_many_passes_unless_each_is_asked_for_its_own() -> None:
    four = Settings().replace({"learner.mu": 4})
    assert {entered(four, name).learner.mu for name in SIX} == {4}
    own = {name: entered(four, name, own_mu=True).learner.mu for name in SIX}
    assert own["GRPO (DeepSeekMath)"] == own["REINFORCE"] == 1 and own["PPO-clip"] == own["RLOO"] == 4


@pytest.mark.parametrize("mu", [1, 4])
def test_with_one_mu_for_all_grpo_leads_from_the_first_update_on(mu: int) -> None:
    lanes = dict(race(Settings().replace({"learner.mu": mu}), updates=20))
    middle = {name: np.median(lane.measures["reward"], axis=-1) for name, lane in lanes.items()}
    others = np.max([course for name, course in middle.items() if name != "GRPO (DeepSeekMath)"], axis=0)
    assert (middle["GRPO (DeepSeekMath)"][1:] > others[1:]).all()


def test_the_leader_of_the_first_race_is_the_same_over_eight_sets_of_seeds() -> None:
    leaders = set()
    for first in range(0, 8 * 16, 16):
        lanes = dict(race(Settings().replace({"learner.mu": MU}), seeds=range(first, first + 16), updates=60))
        lead, *_ = outcome(trained(lanes))
        assert isinstance(lead, Lead)
        leaders.add(lead.leader)
    assert leaders == {"GRPO (DeepSeekMath)"}


def test_on_two_peaks_the_one_whose_median_is_higher_does_not_lead_where_its_seeds_get_stuck() -> None:
    sure, stuck = np.full(64, 0.983), np.where(np.arange(64) % 3 == 0, 0.7, 0.992)
    data = Trained(
        courses={"sure": np.stack([np.zeros(64), sure]), "quick": np.stack([np.zeros(64), stuck])},
        stuck={"sure": np.zeros(64, dtype=bool), "quick": stuck < 0.9},
        floor=0.0,
    )
    assert np.median(stuck) > np.median(sure)
    lead, *_ = outcome(data)
    assert isinstance(lead, Lead) and lead.leader == "sure" and lead.low > 0.05


def test_what_differs_besides_the_objective_is_told_of_each() -> None:
    def told(**choices: Any) -> dict[str, str]:
        return differing({name: entered(Settings().replace({"learner.mu": 4}), name, **choices) for name in SIX})

    assert told()["GRPO (DeepSeekMath)"] == "β 0.04" and told()["PPO-clip"] == "β 0, critic"
    assert told(own_mu=True)["REINFORCE"] == "β 0, μ 1"
    assert told(fairness="samples")["REINFORCE"] == "β 0, G 1"
    alike = {name: entered(BASE, name) for name in ("GRPO (DeepSeekMath)", "Dr. GRPO")}
    assert set(differing(alike).values()) == {""}


def test_at_equal_step_length_group_mean_and_grpo_coincide_on_one_prompt() -> None:
    names = ("REINFORCE + baseline", "GRPO (DeepSeekMath)", "Dr. GRPO")
    lanes = dict(race(BASE, names, seeds=range(8), updates=30, fairness="step_length"))
    for other in names[1:]:
        assert np.allclose(lanes[names[0]].measures["reward"], lanes[other].measures["reward"], atol=1e-9), other
    usual = dict(race(BASE, names, seeds=range(8), updates=30))
    assert not np.allclose(usual[names[0]].measures["reward"], usual[names[1]].measures["reward"], atol=1e-2)


def test_a_constant_added_to_all_rewards_breaks_plain_reinforce_alone() -> None:
    names = ("REINFORCE", "REINFORCE + baseline", "GRPO (DeepSeekMath)")
    usual = dict(race(BASE, names)).values()
    lifted = dict(race(BASE.replace({"task.levels": (10.0,)}), names)).values()
    for name, before, after in zip(names, usual, lifted, strict=True):
        lost = before.measures["reward"][-1] - (after.measures["reward"][-1] - 10)  # (S,), the same random numbers
        if name == "REINFORCE":
            assert lost.mean() > 4 * lost.std(ddof=1) / np.sqrt(len(lost))
            assert after.stuck > before.stuck + 0.4
            assert after.wrong_way.mean() > before.wrong_way.mean() + 0.1
        else:
            assert np.abs(lost).max() < 1e-6, name


def test_at_equal_samples_every_algorithm_draws_as_many() -> None:
    names = ("REINFORCE", "REINFORCE + running mean", "GRPO (DeepSeekMath)")
    lanes = dict(race(BASE, names, seeds=range(4), updates=10, fairness="samples"))
    assert [lane.samples[-1] for lane in lanes.values()] == [80, 80, 80]
    assert [lane.settings.learner.group_size for lane in lanes.values()] == [1, 1, 8]


def test_a_running_mean_learns_from_single_samples_and_does_not_mind_a_constant() -> None:
    names = ("REINFORCE", "REINFORCE + running mean")
    lifted = BASE.replace({"task.levels": (10.0,), "optimizer.learning_rate": 0.02})
    plain, compared = dict(race(lifted, names, fairness="samples")).values()
    assert compared.stuck < plain.stuck - 0.2


def test_a_run_of_equal_step_length_opens_by_itself_bit_for_bit() -> None:
    lanes = dict(race(BASE, ("PPO-clip", "Dr. GRPO"), seeds=(5, 6), updates=8, fairness="step_length"))
    for name, lane in lanes.items():
        alone = learner(lane.run(1))
        step = [next(alone) for _ in range(8)][-1]
        last = step.distribution(step.passes)
        assert last is not None and np.array_equal(np.exp(last), lane.policy[1]), name


def test_from_a_start_that_leans_towards_the_lower_peak_small_steps_get_stuck() -> None:
    stuck = dict(race(BASE.replace(LOCAL_PEAK), ("Dr. GRPO",)))["Dr. GRPO"]
    uniform = BASE.replace({"task.landscape": "double_peak", "task.half_width": 2.5})
    free = dict(race(uniform, ("Dr. GRPO",), updates=400))["Dr. GRPO"]
    assert stuck.stuck > 0.5 > free.stuck


def test_several_prompts_of_different_level_race_too() -> None:
    levels = BASE.replace({"task.levels": (0.0, 1.0, 2.0)})
    lane = dict(race(levels, ("GRPO (DeepSeekMath)",), seeds=range(8), updates=60))["GRPO (DeepSeekMath)"]
    assert lane.policy.shape == (8, 3, 10)
    assert np.median(lane.measures["reward"][-1]) > np.median(lane.measures["reward"][0]) + 0.15


def test_a_race_that_cannot_be_is_refused() -> None:
    with pytest.raises(SettingsError, match="it must be one of updates, samples"):
        race(BASE, fairness="luck")
    with pytest.raises(SettingsError, match="no such preset"):
        race(BASE, ("PPO",))
