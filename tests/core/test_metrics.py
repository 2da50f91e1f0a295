"""The scalar series of a run are a cache of one function of a step."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest

from grpo_core import recompute
from grpo_core.config import Settings
from grpo_core.evaluated_step import EvaluatedStep
from grpo_core.explain import Quantity, explain
from grpo_core.learners import learner, origin
from grpo_core.metrics import METRICS, at_start, metrics, metrics_of, neighbours
from tests.core.steps import random_step

OF_BANDIT = [name for name, metric in METRICS.items() if not metric.language]


def test_every_series_is_described() -> None:
    for name, metric in METRICS.items():
        assert metric.title, name
        assert metric.help.endswith("."), name


def test_a_step_has_every_series() -> None:
    step = random_step(tokens=3, contexts=2)
    found = metrics(dataclasses.replace(step, prompt_tokens=None))
    assert found.keys() == METRICS.keys()
    assert all(math.isfinite(found[name]) for name in OF_BANDIT)
    assert math.isnan(metrics(step)["best_action"]), "other prompts every time have no best token in common"


def test_what_the_record_lacks_is_nan() -> None:
    found = metrics(random_step(bare=True))
    missing = {name for name in OF_BANDIT if math.isnan(found[name])}
    assert missing == {"kl", "entropy", "max_prob", "best_action", "grad_norm"}


@pytest.mark.parametrize("passes", [1, 4])
def test_the_numbers_are_those_of_the_recomputation(passes: int) -> None:
    for number in range(1, 20):
        step = random_step(number, prompts=3, group_size=5, tokens=3, contexts=2, passes=passes)
        found, table = metrics(step), recompute.grouped(step, step.rewards)
        assert found["loss"] == float(recompute.terms(step, 0).loss)
        assert found["clip_fraction"] == float(recompute.terms(step, passes - 1).clipped.sum()) / int(step.mask.sum())
        assert found["dead_groups"] == float(recompute.dead_groups(step).mean())
        assert found["reward_std"] == float(np.nanstd(table, axis=-1, ddof=1).mean())
        assert found["reward_mean"] == pytest.approx(step.rewards.mean())
        assert found["length"] == pytest.approx(step.mask.sum() / 15)
        divergence = recompute.exact_kl(step, passes)
        assert divergence is not None
        assert found["kl"] == pytest.approx(divergence[step.mask].mean())
        assert found["grad_norm"] == step.measurements["grad_norm"]


def test_tokens_that_the_last_pass_did_not_use_are_not_in_its_clipped_share() -> None:
    step = random_step(prompts=2, group_size=4, tokens=3, contexts=2, passes=2)
    part = np.array([[0] * 8, [0, -1] * 4])
    step = dataclasses.replace(step, part=part, denominator=None)
    terms = recompute.terms(step, 1)
    assert metrics(step)["clip_fraction"] == pytest.approx(terms.clipped[::2].sum() / step.mask[::2].sum())
    card = explain(step, Quantity("clip_fraction"))
    assert card.value == pytest.approx(metrics(step)["clip_fraction"]) and len(card.inputs) == 4


FORMS: dict[str, dict[str, object]] = {
    "one token": {},
    "several prompts": {"task.levels": (0.0, 0.5, 2.0), "learner.group_size": 5},
    "chain": {"task.landscape": "chain", "task.max_length": 3, "objective.level": "sequence", "learner.mu": 2},
    "rewards of steps": {"task.landscape": "chain", "task.max_length": 3, "objective.credit": "process"},
    "padded": {"task.landscape": "length", "task.max_length": 4},
    "critic": {"learner.critic": True, "objective.baseline": "given", "objective.std": "none"},
    "exact KL and entropy": {"objective.kl": "exact", "objective.entropy_bonus": 0.1},
    "KL in the reward": {"objective.kl_in": "reward", "objective.std": "batch"},
    "one completion": {"learner.group_size": 1},
}


@pytest.mark.parametrize("form", FORMS)
def test_the_metrics_of_several_updates_are_those_of_each_bit_for_bit(form: str) -> None:
    settings = Settings().replace(FORMS[form])
    run = learner(settings)
    steps = list(itertools.islice(run, 4))
    run.settings = settings.replace({"objective.beta": 0.5, "learner.mu": 3})
    steps += itertools.islice(run, 3)
    unscored = dataclasses.replace(steps[1], rewards=np.where(steps[1].group == 0, np.nan, steps[1].rewards))
    steps.insert(2, unscored)
    for one, step in zip(metrics_of(steps), steps, strict=True):
        alone = metrics(step)
        assert one.keys() == alone.keys()
        np.testing.assert_array_equal(list(one.values()), list(alone.values()))
    assert metrics_of([]) == []


def test_updates_of_one_form_are_computed_together() -> None:
    run = learner(Settings())
    steps = list(itertools.islice(run, 3))
    run.settings = run.settings.replace({"learner.group_size": 5})
    steps += itertools.islice(run, 2)
    unscored = dataclasses.replace(steps[0], rewards=np.full(8, np.nan))
    assert [len(together) for together in neighbours([*steps, unscored, steps[0], steps[1]])] == [3, 2, 1, 2]


def test_unscored_rewards_are_left_out() -> None:
    rewards = np.array([1.0, 0.0, np.nan, np.nan, 5.0, np.nan, np.nan, np.nan])
    step = dataclasses.replace(random_step(prompts=2, group_size=4), rewards=rewards)
    found = metrics(step)
    assert found["reward_mean"] == pytest.approx(2.0)
    assert found["reward_std"] == pytest.approx(math.sqrt(0.5))  # the pair; one scored completion has no std
    assert found["dead_groups"] == 0.5
    nothing = metrics(dataclasses.replace(step, rewards=np.full(8, np.nan)))
    assert math.isnan(nothing["reward_mean"])
    assert math.isnan(nothing["reward_std"])


def test_a_run_starts_where_its_first_update_does() -> None:
    settings = Settings().replace({"task.bias": 2.0})
    start = at_start(origin(settings))
    assert start["kl"] == 0
    assert start["best_action"] == 0
    odds = math.exp(2.0)
    assert start["max_prob"] == pytest.approx(odds / (odds + 9))
    assert at_start(origin(Settings()))["entropy"] == pytest.approx(math.log(10))
    still = next(learner(settings.replace({"optimizer.learning_rate": 0.0})))
    after = metrics(still)
    for name in ("kl", "entropy", "max_prob", "best_action"):
        assert after[name] == pytest.approx(start[name], abs=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_loss_that_cancels_is_rounding_and_a_small_one_is_not(dtype: type[np.floating]) -> None:
    step = random_step(settings=Settings().replace({"objective.beta": 0.0}), group_size=7)
    logp = step.logp.astype(dtype)
    step = dataclasses.replace(step, logp=logp, old_logp=logp[0], rewards=step.rewards.astype(dtype), dist_logp=None)
    even = EvaluatedStep(step)
    assert abs(even.cards["loss"]) <= even.rounding("loss")
    assert even.rounding("loss") < 1e-6 * np.abs(even.advantage).max()
    small = EvaluatedStep(dataclasses.replace(step, advantage=1e-11 * np.arange(7.0)))
    assert 1e-12 < abs(small.cards["loss"]) < 1e-10
    assert abs(small.cards["loss"]) > 1e3 * small.rounding("loss")
    assert even.rounding("clip_fraction") == 0
