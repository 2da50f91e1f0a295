from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest

from grpo_core.bandit import passes
from grpo_core.bandit import tabular_policy as policy
from grpo_core.bandit.layout import gather
from grpo_core.bandit.simulate import Update, draw, start, update, updates
from grpo_core.bandit.streams import Streams
from grpo_core.bandit.tasks import task
from grpo_core.config import Settings
from grpo_core.surrogates import SURROGATES

CASES: dict[str, dict[str, Any]] = {
    "defaults": {},
    "odd group, three prompts": {"learner.group_size": 11, "task.levels": (0.0, 0.3, 5.0)},
    "length": {"task.landscape": "length", "objective.reduction": "token"},
    "chain by sequence": {"task.landscape": "chain", "task.max_length": 5, "objective.level": "sequence"},
    "adam": {"optimizer.kind": "adam"},
    "exact KL and entropy": {"objective.kl": "exact", "objective.entropy_bonus": 0.1, "task.landscape": "chain"},
    "critic": {
        "learner.critic": True,
        "objective.baseline": "given",
        "objective.std": "none",
        "task.landscape": "length",
    },
    "resampling": {
        "learner.resample_dead": True,
        "learner.group_size": 2,
        "task.levels": (0.0, 1.0),
        "task.half_width": 1.0,
    },
    "an older sampler": {"learner.staleness": 3, "objective.importance_cap": 1.5, "task.landscape": "chain"},
    "batch statistics, KL in the reward": {
        "objective.std": "batch",
        "objective.baseline": "batch_mean",
        "objective.kl_in": "reward",
        "task.levels": (0.0, 1.0, 3.0),
    },
}


def after(settings: Settings, seeds: list[int], count: int) -> Update:
    return next(itertools.islice(updates(settings, seeds), count - 1, None))


def arrays(done: Update, run: int) -> dict[str, np.ndarray]:
    """Return every array of an update that belongs to ``run``."""
    state, batch = done.state, done.batch
    found = {
        "logits": state.logits,
        "adam_m": state.moments.first,
        "adam_v": state.moments.second,
        "critic": state.critic,
        "tokens": batch.completions.tokens,
        "rewards": batch.rewards,
        "attempt": batch.attempt,
        "advantage": done.advantage,
        "gradient": np.stack(done.gradient, axis=1),
        "logp": np.stack(done.passes.logp, axis=1),
    }
    return {name: x[run] for name, x in found.items()}


@pytest.mark.parametrize("case", CASES)
def test_a_run_computes_the_same_bits_alone_and_in_any_company(case: str) -> None:
    settings = Settings().replace(CASES[case])
    alone = arrays(after(settings, [20], 12), 0)
    for seeds, run in (([20, 4], 0), ([1, 2, 20], 2), (list(range(67)), 20)):
        for name, there in arrays(after(settings, seeds, 12), run).items():
            np.testing.assert_array_equal(alone[name], there, err_msg=f"{name} among {len(seeds)} runs")


LARGE_GROUPS: dict[str, dict[str, Any]] = {
    **{f"surrogate {name}": {"objective.surrogate": name} for name in SURROGATES},
    **{f"reduction {name}": {"objective.reduction": name} for name in ("sequence", "token", "sequence_sum")},
    "three prompts": {"task.levels": (0.0, 0.3, 5.0)},
    "KL times the ratio": {"objective.kl_importance": True, "objective.kl": "k2"},
    "batch statistics, KL in the reward": {
        "objective.std": "batch",
        "objective.baseline": "batch_mean",
        "objective.kl_in": "reward",
    },
    "critic": {"learner.critic": True, "objective.baseline": "given", "objective.std": "none"},
    "an older sampler": {"learner.staleness": 2, "objective.importance_cap": 1.5},
    "temperature": {"learner.temperature": 0.7},
    "a policy that is no longer finite": {"optimizer.learning_rate": 1000.0, "objective.beta": 1000.0},
}
"""Settings with which each action is sampled several times."""


@pytest.mark.parametrize("runs", [1, 3])
@pytest.mark.parametrize("case", LARGE_GROUPS)
def test_where_actions_repeat_the_loss_is_asked_once_an_action_and_every_bit_stays(case: str, runs: int) -> None:
    settings = Settings().replace({"learner.group_size": 21, "learner.mu": 3, **LARGE_GROUPS[case]})
    work, streams = task(settings.bandit), Streams(range(runs))
    assert passes.repeats_itself(settings, work)
    state = start(work, streams.runs)
    for _ in range(6):
        by_action = update(settings, work, state, streams)
        by_token = update(settings, work, state, streams, batch=by_action.batch)  # a given batch goes token by token
        for run in range(runs):
            for name, there in arrays(by_token, run).items():
                np.testing.assert_array_equal(arrays(by_action, run)[name], there, err_msg=name)
        state = by_action.state


@pytest.mark.parametrize(
    "changes",
    [
        {"learner.group_size": 10},
        {"task.landscape": "chain"},
        {"objective.kl": "exact"},
        {"objective.entropy_bonus": 0.1},
    ],
)
def test_the_loss_is_asked_for_every_token_elsewhere(changes: dict[str, Any]) -> None:
    settings = Settings().replace({"learner.group_size": 64, **changes})
    assert not passes.repeats_itself(settings, task(settings.bandit))


def test_runs_may_have_their_own_settings() -> None:
    fields = {
        "objective.beta": [0.0, 0.5, 1.0],
        "objective.clip_high": [0.1, 0.2, 0.3],
        "optimizer.learning_rate": [0.1, 0.3, 2.0],
        "learner.temperature": [0.5, 1.0, 2.0],
    }
    together = Settings().replace({name: np.array(v).reshape(3, 1, 1) for name, v in fields.items()})
    done = after(together, [5, 5, 5], 10)
    for run in range(3):
        own = Settings().replace({name: v[run] for name, v in fields.items()})
        for name, there in arrays(after(own, [5], 10), 0).items():
            np.testing.assert_array_equal(there, arrays(done, run)[name], err_msg=name)


@pytest.mark.parametrize("landscape", ["single_peak", "length"])
def test_the_policy_that_samples_is_as_old_as_the_staleness_says(landscape: str) -> None:
    settings = Settings().replace({"learner.staleness": 3, "task.landscape": landscape})
    run = list(itertools.islice(updates(settings, [4]), 8))
    for number, done in enumerate(run):
        sampler = run[max(0, number - 3)].dist_logp[0]
        if not number:
            assert done.batch.sampling_logp is None, "nothing older is known at the first update"
            continue
        np.testing.assert_array_equal(done.batch.sampling_logp, gather(sampler, done.places))
        fresh = draw(settings.learner, task(settings.bandit), np.exp(sampler), number + 1, Streams([4]), lambda: None)
        np.testing.assert_array_equal(done.batch.completions.tokens, fresh.completions.tokens)
    assert len(run[-1].state.history) == 3


def test_by_default_every_seed_climbs_onto_action_7() -> None:
    done = after(Settings(), list(range(30)), 200)
    prob = np.exp(policy.log_probs(done.state.logits, 1.0))[:, 0]
    np.testing.assert_array_equal(prob.argmax(axis=-1), 6)
    assert prob[:, 6].min() > 0.9


def test_the_chain_is_learned_from_its_outcome() -> None:
    settings = Settings().replace({"task.landscape": "chain", "task.max_length": 4, "task.actions": 5})
    assert after(settings, list(range(8)), 150).batch.rewards.mean() > 0.9


@pytest.mark.parametrize(("reduction", "grows"), [("sequence", True), ("constant", False)])
def test_wrong_answers_grow_under_one_over_length_and_not_under_a_constant(reduction: str, grows: bool) -> None:
    """Dr. GRPO, arXiv:2503.20783: dividing a completion's loss by its length favours long wrong answers."""
    settings = Settings().replace(
        {
            "task.landscape": "length",
            "objective.reduction": reduction,
            "objective.max_tokens": 8,
            "objective.beta": 0.0,
            "learner.mu": 1,
        }
    )
    prob = np.exp(policy.log_probs(after(settings, list(range(200)), 60).state.logits, 1.0))
    more_right, more_wrong = prob[:, 1, 0], prob[:, 2, 0]
    error = float(more_wrong.std()) / np.sqrt(200)
    if grows:
        assert more_wrong.mean() > 0.6
        assert more_right.mean() < 0.45
    else:
        assert abs(more_wrong.mean() - 0.5) < 4 * error
    assert prob[:, 0, 0].mean() > 0.8


def test_dead_groups_are_drawn_again_and_live_ones_kept() -> None:
    plain = Settings().replace({"learner.group_size": 2, "task.half_width": 1.0, "task.levels": (0.0, 0.0, 0.0)})
    seeds = list(range(40))
    once = after(plain, seeds, 1).batch
    again = after(plain.replace({"learner.resample_dead": True}), seeds, 1).batch
    dead = np.ptp(once.rewards.reshape(40, 3, 2), axis=-1) == 0
    np.testing.assert_array_equal(again.attempt > 0, dead)
    kept = np.repeat(~dead, 2, axis=-1)
    np.testing.assert_array_equal(again.completions.tokens[kept], once.completions.tokens[kept])
    still_dead = np.ptp(again.rewards.reshape(40, 3, 2), axis=-1) == 0
    assert still_dead.mean() < 0.3 < dead.mean()
    assert (again.attempt[still_dead] == 10).all()
    np.testing.assert_array_equal(again.redrawn, again.attempt.sum(axis=-1))
    np.testing.assert_array_equal(again.rewards > 0, again.completions.tokens[..., 0] == 6)


def test_a_group_of_one_is_not_drawn_again() -> None:
    settings = Settings().replace({"learner.group_size": 1, "learner.resample_dead": True})
    assert not after(settings, [1, 2], 1).batch.redrawn.any()


def test_the_critic_moves_towards_the_mean_reward_by_its_own_rate() -> None:
    settings = Settings().replace({"learner.critic": True, "learner.critic_rate": 0.25, "task.levels": (0.0, 3.0)})
    run = updates(settings, [1, 2])
    first, second = next(run), next(run)
    values = np.zeros((2, 2))
    for done in (first, second):
        assert done.values is not None
        np.testing.assert_allclose(done.values[..., 0], np.repeat(values, 8, axis=-1))
        values = values + 0.25 * (done.batch.rewards.reshape(2, 2, 8).mean(axis=-1) - values)
        np.testing.assert_allclose(done.state.critic[..., 0], values, rtol=1e-13)


def test_a_critics_value_of_an_unvisited_state_stays() -> None:
    settings = Settings().replace(
        {"learner.critic": True, "learner.group_size": 1, "task.landscape": "length", "task.levels": (1.0,)}
    )
    done = after(settings, [1, 2, 3], 1)
    visited = np.zeros((3, 3), dtype=bool)
    for run in range(3):
        visited[run, done.batch.completions.context[run][done.batch.completions.mask[run]]] = True
    np.testing.assert_array_equal(done.state.critic[..., 0] != 0, visited)


def test_an_update_leaves_the_state_it_started_from_alone() -> None:
    run = updates(Settings().replace({"optimizer.kind": "adam", "learner.critic": True}), [1, 2])
    state = next(run).state
    before = {f.name: getattr(state.moments, f.name) for f in dataclasses.fields(state.moments)}
    copies = [np.copy(x) for x in (state.logits, state.critic, before["first"], before["second"])]
    next(run)
    for kept, copy in zip((state.logits, state.critic, before["first"], before["second"]), copies, strict=True):
        np.testing.assert_array_equal(kept, copy)
