"""L1 and L14: a checker is enough, but it starts nothing, and a bug in it is found and exploited. Checked over many
seeds.
"""

from __future__ import annotations

import math
from itertools import islice

import numpy as np
import pytest

from grpo_core.advantages import equal_rewards
from grpo_core.bandit import tabular_policy as policy
from grpo_core.bandit.simulate import updates
from grpo_core.config import Settings, language_settings
from grpo_core.experiments.sweep import tilt_measures
from grpo_core.learners import learner
from grpo_core.metrics import metrics
from tests.app.teaching.lessons.held import settings_of

TRICK, NEAR, RIGHT = 1, 5, 6
SEEN = [0, 600]


def trained(settings: Settings, first: int, until: int, runs: int = 24) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Return update -> (probabilities (R, A), mean reward from the checker (R,)), for ``runs`` seeds starting at
    ``first``.
    """
    found = {}
    for done in updates(settings, range(first, first + runs)):
        found[done.state.step] = np.exp(policy.log_probs(done.state.logits, 1.0))[:, 0], done.batch.rewards.mean(-1)
        if done.state.step == until:
            return found
    raise AssertionError


def chances(settings: Settings, first: int, update: int = 50) -> np.ndarray:
    """Return the probabilities (R, A) after an update, for 64 seeds starting at ``first``."""
    return trained(settings, first, update, runs=64)[update][0]


@pytest.mark.parametrize("first", SEEN)
def test_a_checker_alone_is_enough(first: int) -> None:
    assert np.all(chances(settings_of("why_rl", 2), first)[:, RIGHT] > 0.85)
    shown = chances(settings_of("why_rl", 6), first)[:, RIGHT]
    assert np.all(shown > 0.7)
    assert np.median(shown) > 0.85


@pytest.mark.parametrize("first", SEEN)
def test_any_rule_is_learned_and_one_that_passes_everything_teaches_nothing(first: int) -> None:
    nothing = settings_of("why_rl", 7)
    assert chances(nothing, first) == pytest.approx(np.full((64, 10), 0.1), abs=1e-15)
    for paid in (0, 2, 9):
        rule = nothing.replace({"task.custom": tuple(float(n == paid) for n in range(10))})
        assert np.all(chances(rule, first)[:, paid] > 0.85)


@pytest.mark.parametrize("first", SEEN)
def test_what_is_rare_is_slow_but_comes(first: int) -> None:
    found = trained(settings_of("why_rl", 4), first, 300, runs=64)
    early, late = found[50][0], found[300][0]
    assert np.all(early[:, RIGHT] < 0.2)
    assert np.median(early[:, RIGHT]) < 0.03
    assert np.all(late[:, RIGHT] > 0.7)
    assert np.median(late[:, RIGHT]) > 0.95


@pytest.mark.parametrize("first", [0, 5000])
def test_most_groups_hold_no_success_at_the_rare_start(first: int) -> None:
    """One answer in 157, and (1 − p)^8 of the groups, within four standard errors of the sample."""
    done = next(updates(settings_of("why_rl", 4), range(first, first + 4000)))
    chance = 1 / (9 + math.exp(5))
    assert 1 / chance == pytest.approx(157, abs=1)
    silent = (1 - chance) ** 8
    assert silent == pytest.approx(0.95, abs=0.005)
    for found, expected in ((done.batch.rewards, chance), (equal_rewards(done.batch.rewards), silent)):
        assert found.mean() == pytest.approx(expected, abs=4 * math.sqrt(expected * (1 - expected) / found.size))


@pytest.mark.parametrize("size", [8, 512])
def test_from_nothing_nothing_moves_however_large_the_group(size: int) -> None:
    settings = settings_of("why_rl", 3).replace({"learner.group_size": size})
    for done in updates(settings, range(8)):
        assert not done.batch.rewards.any()
        assert not done.gradient[0].any()
        if done.state.step == 60:
            break


@pytest.mark.parametrize("first", SEEN)
def test_the_best_of_what_is_done_wins_over_what_would_pay_more(first: int) -> None:
    last = chances(settings_of("why_rl", 8), first)
    assert np.all(last[:, NEAR] > 0.8)
    assert np.all(last[:, RIGHT] < 1e-20)
    tried = chances(settings_of("why_rl", 8).replace({"task.bias": 0.0}), first, 200)
    assert np.median(tried[:, RIGHT]) > 0.9, "where it is tried, it is what wins"


@pytest.mark.long
def test_a_language_model_learns_nothing_from_what_it_never_solves() -> None:
    never, mixed = (language_settings().replace({"task.difficulty": name}) for name in ("hopeless", "mixed"))
    for step in islice(learner(never), 6):
        assert not step.rewards.any()
        assert metrics(step)["grad_norm"] == 0.0
    assert metrics(next(iter(learner(mixed))))["grad_norm"] > 0.0


def tilted(settings: Settings, beta: float) -> np.ndarray:
    """Return the exact optimum with an exact KL: reference × exp(reward / β)."""
    weights = np.exp(np.array(settings.bandit.custom) / beta)
    weights[TRICK] *= np.exp(settings.bandit.bias)
    return np.asarray(weights / weights.sum())


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
