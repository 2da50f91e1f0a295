"""L1: a checker is enough, but it starts nothing; by keyboard and over many seeds."""

from __future__ import annotations

import math
from itertools import islice

import numpy as np
import pytest

from grpo_core.advantages import equal_rewards
from grpo_core.bandit import tabular_policy as policy
from grpo_core.bandit.simulate import updates
from grpo_core.config import Settings, language_settings
from grpo_core.learners import learner
from grpo_core.metrics import metrics
from tests.app.teaching.lessons.hands import Pupil
from tests.app.teaching.lessons.held import SAME, UP, known, settings_of

RUNS = 64
NEAR, RIGHT = 5, 6
SEEN = [0, 600]


def trained(settings: Settings, first: int, *until: int) -> list[np.ndarray]:
    """Return the probabilities (R, A) after these updates, for R runs with seeds starting at ``first``."""
    found = []
    for done in updates(settings, range(first, first + RUNS)):
        if done.state.step in until:
            found.append(np.exp(policy.log_probs(done.state.logits, 1.0))[:, 0])
        if done.state.step == until[-1]:
            return found
    raise AssertionError


@pytest.mark.long
def test_it_is_walked_by_keyboard_and_the_run_agrees(pupil: Pupil) -> None:
    known(pupil, "why_rl", {2: 0.94, 3: 1, 4: 0.02, 5: UP, 6: 2, 7: SAME, 8: 2})


@pytest.mark.parametrize("first", SEEN)
def test_a_checker_alone_is_enough(first: int) -> None:
    assert np.all(trained(settings_of("why_rl", 2), first, 50)[0][:, RIGHT] > 0.85)
    shown = trained(settings_of("why_rl", 6), first, 50)[0][:, RIGHT]
    assert np.all(shown > 0.7)
    assert np.median(shown) > 0.85


@pytest.mark.parametrize("first", SEEN)
def test_any_rule_is_learned_and_one_that_passes_everything_teaches_nothing(first: int) -> None:
    nothing = settings_of("why_rl", 7)
    assert trained(nothing, first, 50)[0] == pytest.approx(np.full((RUNS, 10), 0.1), abs=1e-15)
    for paid in (0, 2, 9):
        rule = nothing.replace({"task.custom": tuple(float(n == paid) for n in range(10))})
        assert np.all(trained(rule, first, 50)[0][:, paid] > 0.85)


@pytest.mark.parametrize("first", SEEN)
def test_what_is_rare_is_slow_but_comes(first: int) -> None:
    early, late = trained(settings_of("why_rl", 4), first, 50, 300)
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
    last = trained(settings_of("why_rl", 8), first, 50)[0]
    assert np.all(last[:, NEAR] > 0.8)
    assert np.all(last[:, RIGHT] < 1e-20)
    tried = trained(settings_of("why_rl", 8).replace({"task.bias": 0.0}), first, 200)[0]
    assert np.median(tried[:, RIGHT]) > 0.9, "where it is tried, it is what wins"


@pytest.mark.long
def test_a_language_model_learns_nothing_from_what_it_never_solves() -> None:
    never, mixed = (language_settings().replace({"task.difficulty": name}) for name in ("hopeless", "mixed"))
    for step in islice(learner(never), 6):
        assert not step.rewards.any()
        assert metrics(step)["grad_norm"] == 0.0
    assert metrics(next(iter(learner(mixed))))["grad_norm"] > 0.0
