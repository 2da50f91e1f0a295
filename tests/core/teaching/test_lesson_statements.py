"""Statements of the lessons, checked against the training code over many seeds, without a window."""

from __future__ import annotations

import math

import numpy as np
import pytest

from grpo_core import recompute
from grpo_core.advantages import advantages, equal_rewards
from grpo_core.bandit.learner import BanditLearner
from grpo_core.bandit.simulate import updates
from grpo_core.config import Objective, Settings
from grpo_core.experiments.ensemble import Ensemble, ensembles
from grpo_core.experiments.race import race
from grpo_core.experiments.sweep import ESTIMATORS, tilt_measures
from grpo_core.learners import learner
from grpo_core.metrics import metrics
from grpo_core.objective import evaluate, gradient
from grpo_core.record import Step
from grpo_core.teaching.lessons.theory import bias_of, dead_share

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
        name: float(
            recompute.terms(
                recompute.under(step, step.settings.replace({"objective.reduction": name, "objective.max_tokens": 8})),
                0,
            ).loss
        )
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


def coins(chance: float, size: int, **changes: object) -> Settings:
    return Settings().replace({**COINS, "task.bias": bias_of(chance), "learner.group_size": size, **changes})


@pytest.mark.parametrize("size", [1, 2, 4, 8])
@pytest.mark.parametrize("chance", [0.0, 0.1, 0.3, 0.5, 0.8, 0.9, 1.0])
def test_the_share_of_dead_groups_is_the_expected_one(chance: float, size: int) -> None:
    done = next(updates(coins(chance, size), range(32)))
    dead = equal_rewards(done.batch.rewards.reshape(32, 64, size))
    expected = dead_share(chance, size)
    spread = math.sqrt(expected * (1 - expected) / dead.size)
    assert dead.mean() == pytest.approx(expected, abs=4 * spread + 1e-12)  # four standard errors of 2,048 groups
    assert dead_share(chance, size) == pytest.approx(dead_share(1 - chance, size))
    assert np.all(done.advantage.reshape(32, 64, size)[dead] == 0.0)


@pytest.mark.parametrize("chance", [0.0, 1.0])
def test_all_right_and_all_wrong_have_no_gradient_at_all(chance: float) -> None:
    (step,) = steps(coins(chance, 8), 1)
    assert metrics(step)["grad_norm"] == 0.0
    assert metrics(step)["dead_groups"] == 1.0


@pytest.mark.parametrize("seed", SEEDS)
def test_a_group_of_one_never_moves(seed: int) -> None:
    for landscape in ("single_peak", "double_peak", "linear"):
        settings = changed(seed=seed, learner__group_size=1, objective__beta=0.0, task__landscape=landscape)
        for step in steps(settings, 5):
            assert step.dist_logp is not None
            assert np.array_equal(step.dist_logp[-1], step.dist_logp[0])


def test_groups_drawn_again_are_hardly_ever_dead() -> None:
    done = next(updates(coins(0.9, 8, **{"learner.resample_dead": True}), range(32)))
    dead = equal_rewards(done.batch.rewards.reshape(32, 64, 8))
    expected = dead_share(0.9, 8) ** 11
    assert dead.mean() <= expected + 4 * math.sqrt(expected / dead.size)
    assert done.batch.redrawn.sum() > 0.4 * dead.size


# -- L11: clipping -----------------------------------------------------------------------------------------------------

MANY_PASSES: dict[str, object] = {"objective.beta": 0.0, "learner.mu": 16, "optimizer.learning_rate": 1.0}
NO_CLIP: dict[str, object] = {"objective.clip_low": 1e6, "objective.clip_high": 1e6}


@pytest.mark.parametrize("seed", SEEDS)
def test_with_one_pass_nothing_is_ever_clipped(seed: int) -> None:
    settings = changed(seed=seed, objective__beta=0.0, learner__mu=1, optimizer__learning_rate=5.0)
    for step in steps(settings, 20):
        assert metrics(step)["clip_fraction"] == 0.0
        assert np.all(recompute.terms(step, 0).ratio == 1.0)


@pytest.mark.parametrize("low", [0.1, 0.2, 0.9])
@pytest.mark.parametrize("high", [0.1, 0.28, 2.0])
def test_two_of_the_four_corners_are_never_clipped(low: float, high: float) -> None:
    ratio = np.array([[(1 - low) / 2], [1 + 2 * high]] * 2)
    advantage = np.array([1.0, 1.0, -1.0, -1.0])
    goal = Objective(beta=0.0, clip_low=low, clip_high=high)
    given = np.log(ratio), np.zeros((4, 1)), advantage, np.ones((4, 1), dtype=bool)
    assert evaluate(goal, *given).clipped[:, 0].tolist() == [False, True, True, False]
    push = gradient(goal, *given)[:, 0]
    assert push[[1, 2]].tolist() == [0.0, 0.0]
    assert push[[0, 3]] == pytest.approx(-advantage[[0, 3]] * ratio[[0, 3], 0] / 4)  # at full strength


@pytest.mark.parametrize("seed", SEEDS)
def test_the_clip_stops_the_push_and_not_the_ratio(seed: int) -> None:
    (step,) = steps(Settings().replace({**MANY_PASSES, "seed": seed}), 1)
    ratios = [recompute.terms(step, n).ratio for n in range(step.passes)]
    assert np.max(ratios) > 1.2
    last = recompute.terms(step, step.passes - 1)
    push, _ = recompute.token_gradient(step, step.passes - 1)
    assert np.all(push[last.clipped] == 0.0)


def test_many_passes_without_the_clip_end_on_another_action_more_often() -> None:
    both = [Settings().replace(MANY_PASSES), Settings().replace({**MANY_PASSES, **NO_CLIP})]
    first = [ensemble.measures for ensemble in ensembles(both, range(128), 1)]
    with_clip, without = ensembles(both, range(128), 20)
    spread = math.sqrt((with_clip.stuck * (1 - with_clip.stuck) + without.stuck * (1 - without.stuck)) / 128)
    assert without.stuck - with_clip.stuck > 3 * spread
    assert [ensemble["entropy"][-1].mean() for ensemble in first] == pytest.approx([2.27, 0.4], abs=0.2)


# -- L13: beta sweep ---------------------------------------------------------------------------------------------------

AGAINST_KL = Settings().replace(
    {
        "objective.baseline": "leave_one_out",
        "objective.std": "none",
        "objective.surrogate": "log_prob",
        "learner.mu": 1,
        "learner.group_size": 64,
        "optimizer.learning_rate": 2.0,
    }
)
AS_GRPO: dict[str, object] = {
    "objective.baseline": "group_mean",
    "objective.std": "sample",
    "objective.surrogate": "clip",
}
OVER = (0.2, 0.5, 1.0)


def final_kl(first: int, **changes: object) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean final KL at every β of ``OVER``, and its standard error, over sixteen seeds starting at
    ``first``.
    """
    points = [AGAINST_KL.replace({**changes, "objective.beta": beta}) for beta in OVER]
    last = np.array([runs.measures["kl"][-1] for runs in ensembles(points, range(first, first + 16), 400)])
    return last.mean(axis=-1), last.std(axis=-1, ddof=1) / 4


THEORY = np.array([tilt_measures(AGAINST_KL, beta)["kl"] for beta in OVER])


@pytest.mark.parametrize("first", [0, 500])
@pytest.mark.parametrize("name", ["exact", "k2", "ratio × k3"])
def test_reinforce_against_a_kl_with_the_right_gradient_arrives_where_theory_says(name: str, first: int) -> None:
    found, error = final_kl(first, **ESTIMATORS[name])
    assert np.all(np.abs(found - THEORY) <= 4 * error + 0.01 * THEORY)  # a hundredth of the way is not yet gone


@pytest.mark.parametrize("first", [0, 500])
def test_k3_arrives_elsewhere_and_k1_does_nothing(first: int) -> None:
    found, error = final_kl(first, **ESTIMATORS["k3"])
    assert found[0] - THEORY[0] > 10 * error[0]
    assert np.all(np.abs(found - THEORY) < 0.3), "near the line, not on it"
    free, _ = final_kl(first, **ESTIMATORS["k1"])
    assert np.ptp(free) < 0.05
    assert np.all(free > 2.2)


@pytest.mark.parametrize("first", [0, 500])
def test_grpo_does_not_feel_beta_and_then_falls_off_a_cliff(first: int) -> None:
    flat = final_kl(first, **{**AS_GRPO, **ESTIMATORS["exact"]})[0]
    assert np.all(flat[:2] > 2.2)
    assert flat[2] < 1.2
    gentle = final_kl(first, **{**AS_GRPO, **ESTIMATORS["k3"]})[0]
    assert np.all(np.diff(gentle) < -0.4), "with k3 there is a slope, and no cliff"


# -- L17: a fair race --------------------------------------------------------------------------------------------------

RACERS = ("GRPO (DeepSeekMath)", "Dr. GRPO", "REINFORCE + baseline", "REINFORCE", "PPO-clip")
OPEN = Settings().replace({"objective.beta": 0.0, "learner.mu": 1, "optimizer.learning_rate": 0.3})


def raced(first: int, fairness: str, **changes: object) -> dict[str, Ensemble]:
    settings = OPEN.replace({path.replace("__", "."): value for path, value in changes.items()})
    return dict(race(settings, RACERS, seeds=range(first, first + 48), updates=50, fairness=fairness))


def best(runs: Ensemble) -> tuple[float, float]:
    """Return the mean final probability of the best action, and its standard error."""
    last = runs.measures["best_prob"][-1]
    return float(last.mean()), float(last.std(ddof=1) / math.sqrt(len(last)))


def ahead(one: Ensemble, other: Ensemble) -> float:
    """Return by how many standard errors the first is ahead."""
    (a, spread), (b, other_spread) = best(one), best(other)
    return (a - b) / math.hypot(spread, other_spread)


@pytest.mark.parametrize("first", [0, 700])
def test_at_equal_step_length_the_std_changes_nothing_on_one_prompt(first: int) -> None:
    equal = raced(first, "step_length")
    grpo = equal["GRPO (DeepSeekMath)"].measures["best_prob"]
    for name in ("Dr. GRPO", "REINFORCE + baseline"):
        assert np.abs(equal[name].measures["best_prob"] - grpo).max() < 1e-9
    updates_ = raced(first, "updates")
    assert ahead(updates_["GRPO (DeepSeekMath)"], updates_["REINFORCE + baseline"]) > 10


@pytest.mark.parametrize("first", [0, 700])
def test_a_constant_breaks_plain_reinforce_and_no_baseline_hears_it(first: int) -> None:
    without, with_ten = raced(first, "step_length"), raced(first, "step_length", task__levels=(10.0,))
    assert ahead(without["REINFORCE"], with_ten["REINFORCE"]) > 4
    for name in ("GRPO (DeepSeekMath)", "Dr. GRPO", "REINFORCE + baseline"):
        found, usual = (runs[name].measures["best_prob"][-1] for runs in (with_ten, without))
        assert found == pytest.approx(usual, abs=1e-6)


@pytest.mark.parametrize("first", [0, 700])
def test_prompts_of_different_level_are_where_the_group_mean_earns_its_keep(first: int) -> None:
    usual = raced(first, "step_length", task__levels=(0.0, 5.0, 10.0))
    grpo = usual["GRPO (DeepSeekMath)"]
    assert ahead(grpo, usual["REINFORCE + baseline"]) > 10
    assert ahead(grpo, usual["PPO-clip"]) > 4, "a critic has to learn first what the group's mean is"
    fast = raced(first, "step_length", task__levels=(0.0, 5.0, 10.0), learner__critic_rate=1.0)
    assert best(fast["PPO-clip"])[0] == pytest.approx(best(grpo)[0], abs=0.05)


@pytest.mark.parametrize("first", [0, 700])
def test_at_equal_samples_reinforce_is_stuck_more_often(first: int) -> None:
    equal = raced(first, "samples")
    plain, grpo = equal["REINFORCE"], equal["GRPO (DeepSeekMath)"]
    assert len(plain.measures["reward"]) == 401
    assert plain.stuck - grpo.stuck > 2 * math.sqrt(plain.stuck * (1 - plain.stuck) / 48)
    assert plain.measures["reward"].mean() > grpo.measures["reward"].mean(), "it is ahead for most of the way"
