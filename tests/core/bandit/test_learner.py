from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from grpo_core import recompute
from grpo_core.bandit.tabular_policy import log_probs
from grpo_core.config import PRESETS, Objective, Settings
from grpo_core.errors import Cancelled, GrpoError, NonFiniteError, SettingsError
from grpo_core.learners import learner, origin
from grpo_core.metrics import METRICS, metrics
from grpo_core.record import ARRAYS, Step
from tests.core.steps import same

EVERYTHING: dict[str, Any] = {
    "task.landscape": "length",
    "task.max_length": 4,
    "task.levels": (0.0, 1.0),
    "learner.group_size": 3,
    "learner.mu": 2,
    "learner.critic": True,
    "learner.resample_dead": True,
    "optimizer.kind": "adam",
}
STALE: dict[str, Any] = {**EVERYTHING, "learner.staleness": 3, "objective.importance_cap": 1.2}


def steps(settings: Settings, count: int, **more: Any) -> list[Step]:
    return list(itertools.islice(learner(settings, **more), count))


def test_a_step_holds_everything_in_the_shapes_of_the_record() -> None:
    settings = Settings().replace({"task.landscape": "chain", "task.max_length": 3, "task.levels": (0.0, 1.0)})
    step = steps(settings, 1)[0]
    B, T, N, C, V, K = 16, 3, 4, 6, 10, 3
    shapes = {
        "group": (B,),
        "row_id": (B,),
        "tokens": (B, T),
        "mask": (B, T),
        "rewards": (B,),
        "reward_parts": (B, K),
        "step_rewards": (B, T),
        "old_logp": (B, T),
        "ref_logp": (B, T),
        "logp": (N + 1, B, T),
        "part": (N, B),
        "context": (B, T),
        "dist_logp": (N + 1, C, V),
        "ref_dist_logp": (C, V),
    }
    assert {name: getattr(step, name).shape for name in ARRAYS if getattr(step, name) is not None} == shapes
    assert all(getattr(step, name).flags.c_contiguous for name in shapes)
    assert step.step == 1
    np.testing.assert_array_equal(step.group, np.repeat([0, 1], 8))
    np.testing.assert_array_equal(step.row_id, np.arange(16))
    assert step.dist_logp is not None
    assert step.context is not None
    np.testing.assert_array_equal(step.logp, step.dist_logp[:, step.context, step.tokens])


@pytest.mark.parametrize("mu", [1, 4])
@pytest.mark.parametrize("landscape", ["single_peak", "length", "chain"])
def test_before_the_first_pass_the_ratio_is_exactly_1(landscape: str, mu: int) -> None:
    for step in steps(Settings().replace({"task.landscape": landscape, "learner.mu": mu}), 5):
        np.testing.assert_array_equal(recompute.terms(step, 0).ratio, 1)
        assert not recompute.terms(step, 0).clipped.any()
        assert (recompute.terms(step, mu - 1).ratio == 1).all() == (mu == 1)


@pytest.mark.parametrize("changes", [{}, EVERYTHING, STALE])
def test_a_run_of_the_same_seed_goes_on_from_its_beginning_or_any_step_bit_for_bit(changes: dict[str, Any]) -> None:
    settings = Settings().replace(changes)
    whole = steps(settings, 8)
    assert (steps(settings.replace({"seed": 8}), 1)[0].tokens != whole[0].tokens).any()
    for number in (0, 1, 5):
        rest = steps(settings, 8 - number, resume=whole[number - 1] if number else None)
        for one, other in zip(whole[number:], rest, strict=True):
            assert same(one, other)


def test_a_branch_may_start_under_other_live_settings() -> None:
    settings = Settings()
    branch = steps(settings.replace({"objective.beta": 1.0}), 1, resume=steps(settings, 3)[-1])[0]
    assert branch.step == 4
    np.testing.assert_array_equal(branch.tokens, steps(settings, 4)[-1].tokens)
    assert branch.settings.objective.beta == 1.0


def test_a_branch_cannot_start_under_other_structural_settings() -> None:
    step = steps(Settings(), 1)[0]
    with pytest.raises(SettingsError, match="new run") as error:
        learner(Settings(seed=8), resume=step)
    assert error.value.field == "seed"


def test_a_step_without_a_policy_cannot_be_resumed() -> None:
    step = replace(steps(Settings(), 1)[0], resume={})
    with pytest.raises(GrpoError, match="Update 1 does not contain a bandit's policy"):
        learner(Settings(), resume=step)


def counted(asked: Iterator[int], cancel_at: int) -> Callable[[], None]:
    """Return a poll that counts its calls and raises ``Cancelled`` at the given one."""

    def poll() -> None:
        if next(asked) == cancel_at:
            raise Cancelled

    return poll


@pytest.mark.parametrize("changes", [{}, EVERYTHING, STALE])
def test_an_update_cancelled_anywhere_leaves_no_trace(changes: dict[str, Any]) -> None:
    settings = Settings().replace(changes)
    first, second, third = steps(settings, 3)
    asked = itertools.count()
    assert same(steps(settings, 1, resume=first, poll=counted(asked, -1))[0], second)
    polls = next(asked)
    assert polls > settings.learner.mu
    for place in range(polls):
        run = learner(settings, resume=first, poll=counted(itertools.count(), place))
        with pytest.raises(Cancelled):
            next(run)
        assert same(next(run), second)
        assert same(next(run), third)


def test_an_update_is_asked_about_before_every_token_and_pass() -> None:
    asked = itertools.count()
    settings = Settings().replace({"task.landscape": "chain", "task.max_length": 5, "learner.mu": 3})
    next(learner(settings, poll=counted(asked, -1)))
    assert next(asked) == 5 + 3


WILD = Settings().replace(
    {"task.landscape": "custom", "task.custom": (1e9, -1e9, 0, 0, 0, 0, 0, 0, 0, 5e8), "objective.std": "none"}
)


def test_numbers_that_are_not_finite_stop_the_run_at_its_last_good_update() -> None:
    calm = WILD.replace({"optimizer.learning_rate": 0.0})
    run = learner(calm)
    first = next(run)
    run.settings = WILD.replace({"optimizer.learning_rate": 1e3})
    for _ in range(2):
        with pytest.raises(NonFiniteError, match="Update 2: the loss of pass 2 is not a finite number"):
            next(run)
    run.settings = calm
    assert same(next(run), steps(calm, 1, resume=first)[0])


def test_huge_but_finite_numbers_do_not_stop_a_run() -> None:
    settings = WILD.replace(
        {"optimizer.learning_rate": 1e3, "objective.surrogate": "log_prob", "objective.beta": 0.0, "learner.mu": 64}
    )
    assert np.abs(steps(settings, 2)[-1].resume["logits"]).max() > 1e12


def test_a_critic_that_diverges_stops_the_run() -> None:
    settings = WILD.replace({"learner.critic": True, "learner.critic_rate": 10.0, "objective.beta": 0.0})
    with pytest.raises(NonFiniteError, match="a value of the critic after the update is not a finite number"):
        steps(settings, 400)


def test_live_settings_act_at_the_next_update() -> None:
    run = learner(Settings())
    first = next(run)
    changes = {
        "learner.group_size": 5,
        "learner.mu": 1,
        "task.peak": 2.0,
        "objective.beta": 0.0,
        "learner.temperature": 2.0,
        "optimizer.kind": "adam",
        "learner.critic": True,
    }
    run.settings = run.settings.replace(changes)
    second = next(run)
    assert (first.rewards.shape, first.passes) == ((8,), 4)
    assert (second.rewards.shape, second.passes) == ((5,), 1)
    np.testing.assert_allclose(second.rewards, np.maximum(0, 1 - np.abs(second.tokens[:, 0] + 1 - 2) / 5))
    assert second.dist_logp is not None
    warmer = log_probs(first.resume["logits"][None], 2.0)[0]
    np.testing.assert_allclose(second.dist_logp[0], warmer, atol=1e-14)
    assert same(second, steps(run.settings, 1, resume=first)[0])


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("seed", 8),
        ("task.actions", 11),
        ("task.landscape", "linear"),
        ("task.bias", 1.0),
        ("task.levels", (0.0, 0.0)),
        ("task.max_length", 3),
    ],
)
def test_structural_settings_need_a_new_run(path: str, value: Any) -> None:
    run = learner(Settings())
    next(run)
    with pytest.raises(SettingsError, match="start a new run") as error:
        run.settings = run.settings.replace({path: value})
    assert error.value.field == path
    assert run.settings == Settings()
    assert next(run).step == 2


def test_custom_rewards_are_live() -> None:
    run = learner(Settings().replace({"task.landscape": "custom"}))
    next(run)
    run.settings = run.settings.replace({"task.custom": (3.0,) * 10})
    np.testing.assert_array_equal(next(run).rewards, 3)


def test_resampled_rows_are_told_apart() -> None:
    settings = Settings().replace(
        {"learner.resample_dead": True, "learner.group_size": 2, "task.half_width": 1.0, "task.levels": (0.0,) * 4}
    )
    for step in steps(settings, 4):
        attempt = step.row_id // 8
        np.testing.assert_array_equal(step.row_id % 8, np.arange(8))
        assert step.measurements["resampled"] == attempt[::2].sum() > 0


def test_the_origin_is_the_run_before_its_first_update() -> None:
    settings = Settings().replace({"task.bias": 2.0, "task.bias_action": 4, "learner.temperature": 1.5})
    start, first = origin(settings), steps(settings, 1)[0]
    assert first.dist_logp is not None
    np.testing.assert_array_equal(start.dist_logp, first.dist_logp[0])
    np.testing.assert_array_equal(start.ref_dist_logp, first.ref_dist_logp)
    assert start.action_rewards is not None
    np.testing.assert_array_equal(start.action_rewards[first.group, first.tokens[:, 0]], first.rewards)
    assert start.vocabulary == (*"123456789", "10")


@pytest.mark.parametrize("landscape", ["single_peak", "length", "chain"])
@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_trains(preset: str, landscape: str) -> None:
    task = {"task.landscape": landscape, "task.max_length": 4, "task.actions": 6, "task.levels": (0.0, 1.0)}
    settings = PRESETS[preset].applied_to(Settings().replace(task))
    for step in steps(settings, 5):
        values = metrics(step)
        assert all(np.isfinite(v) for name, v in values.items() if not METRICS[name].language), values
    assert np.abs(step.resume["logits"]).max() > 0.01


def test_an_exact_kl_that_enters_the_reward_needs_no_distribution_in_the_loss() -> None:
    training = learner(Settings(objective=Objective(kl="exact", kl_in="reward", beta=0.1)))
    steps = [next(training) for _ in range(3)]
    assert all(np.isfinite(recompute.terms(step, 0).loss) for step in steps)
