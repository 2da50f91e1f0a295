"""Rewards for steps: against a plain loop over the definition, in every library, and everywhere they are shown."""

from __future__ import annotations

import dataclasses
import math
from itertools import product

import numpy as np
import pytest

from grpo_core import recompute
from grpo_core.advantages import from_here_on, step_scores
from grpo_core.arrays import to_numpy
from grpo_core.bandit.learner import again
from grpo_core.bandit.simulate import updates
from grpo_core.config import Objective, Settings, language_settings
from grpo_core.errors import SettingsError
from grpo_core.explain import Quantity, explain
from grpo_core.export.script import step_script
from grpo_core.learners import learner, origin
from grpo_core.reasons import reasons
from grpo_core.record import Step
from grpo_core.runs.layout import decoded, encoded
from grpo_core.testing import cases
from grpo_core.testing.scripts import compare, executed
from grpo_core.testing.updates import every_quantity, trained
from grpo_core.what_if import unchanged, what_if
from tests.core.explain_cases import in_single_precision

BASELINES, SCALES = ("group_mean", "batch_mean", "none"), ("sample", "population", "batch", "none")
CHAIN = Settings().replace(
    {
        "task.landscape": "chain",
        "task.max_length": 4,
        "task.actions": 5,
        "task.levels": (0.0, 1.0),
        "learner.group_size": 3,
        "learner.mu": 2,
        "objective.credit": "process",
        "task.faulty_action": 3,
        "task.faulty_reward": 1.5,
    }
)


def by_hand(rewards: list[list[list[float]]], baseline: str, std: str, epsilon: float) -> list[list[list[float]]]:
    """Compute DeepSeekMath 4.1.3 in plain Python: rewards of steps [prompt][completion][token], NaN where no step
    ends.
    """

    def steps(groups: list[list[list[float]]]) -> list[float]:
        return [r for group in groups for row in group for r in row if not math.isnan(r)]

    def spread(values: list[float], freedom: int) -> float:
        if len(values) <= freedom or max(values) == min(values):
            return math.nan
        middle = sum(values) / len(values)
        return math.sqrt(sum((r - middle) ** 2 for r in values) / (len(values) - freedom))

    found = []
    for group in rewards:
        own, every = steps([group]), steps(rewards)
        mean = {"group_mean": sum(own) / max(len(own), 1), "batch_mean": sum(every) / len(every), "none": 0.0}[baseline]
        sigma = {
            "sample": spread(own, 1),
            "population": spread(own, 0),
            "batch": spread(every, 1),
            "none": math.nan,
        }[std]
        below = 1.0 if math.isnan(sigma) else sigma + epsilon
        silent = baseline == "group_mean" and (not own or max(own) == min(own))
        table = []
        for row in group:
            scores = [0.0 if math.isnan(r) or silent else (r - mean) / below for r in row]
            table.append([sum(scores[t:]) for t in range(len(row))])
        found.append(table)
    return found


@pytest.mark.parametrize("backend", cases.BACKENDS)
@pytest.mark.parametrize(("baseline", "std"), list(product(BASELINES, SCALES)))
def test_every_library_gives_what_the_definition_says(backend: str, baseline: str, std: str) -> None:
    rng = np.random.default_rng(3)
    rewards = np.where(rng.random((2, 3, 4, 5)) < 0.3, np.nan, rng.integers(0, 3, (2, 3, 4, 5)) / 2)
    rewards[0, 1] = np.where(np.isnan(rewards[0, 1]), np.nan, 0.5)  # a group whose steps have equal rewards
    rewards[1, 2] = np.nan  # and one without any step
    objective = Objective(credit="process", baseline=baseline, std=std)
    there = cases.converter(backend)
    found = to_numpy(from_here_on(step_scores(objective, there(rewards))))
    for run in range(2):
        expected = by_hand(rewards[run].tolist(), baseline, std, objective.std_epsilon)
        np.testing.assert_allclose(found[run], expected, atol=1e-12)


@pytest.mark.parametrize(("baseline", "std"), list(product(BASELINES, SCALES)))
def test_a_run_trains_on_it_and_its_record_says_the_same(baseline: str, std: str) -> None:
    settings = CHAIN.replace({"objective.baseline": baseline, "objective.std": std})
    step, done = trained(settings), next(updates(settings, [settings.seed]))
    assert step.step_rewards is not None
    paid = np.where(step.tokens == 2, 1.5, (step.tokens == np.array([0, 3, 1, 4])).astype(float))
    np.testing.assert_array_equal(step.step_rewards, paid)
    assert step.reward_parts is not None
    np.testing.assert_allclose(step.rewards, (step.group == 1) + step.reward_parts.mean(axis=1))
    expected = np.array(by_hand(paid.reshape(2, 3, 4).tolist(), baseline, std, 1e-4)).reshape(6, 4)
    np.testing.assert_allclose(recompute.advantage(step), expected, atol=1e-12)
    np.testing.assert_allclose(done.advantage[0], recompute.advantage(step), atol=1e-12)


def test_padding_has_no_advantage() -> None:
    step = trained(CHAIN)
    mask = step.mask.copy()
    mask[1, 2:] = False
    found = recompute.advantage(dataclasses.replace(step, mask=mask))
    np.testing.assert_array_equal(found[~mask], 0.0)
    assert found[mask].any()


def test_a_single_decision_is_the_same_as_its_outcome() -> None:
    one = CHAIN.replace({"task.max_length": 1, "task.faulty_action": None, "task.levels": (0.0,)})
    other = learner(one.replace({"objective.credit": "outcome"}))
    for process, outcome, _ in zip(learner(one), other, range(20), strict=False):
        np.testing.assert_allclose(process.logp, outcome.logp, rtol=1e-12)


@pytest.mark.parametrize(("baseline", "std"), [("group_mean", "sample"), ("batch_mean", "batch"), ("none", "none")])
def test_every_number_explains_itself(baseline: str, std: str) -> None:
    step = trained(CHAIN.replace({"objective.baseline": baseline, "objective.std": std}), 2)
    silent = _one_silent(step)
    for held in (step, in_single_precision(step), silent):
        for quantity in every_quantity(held):
            if held is silent and quantity.name == "new_probability":
                continue  # the run went on from other rewards
            node = explain(held, quantity)
            assert node.agrees, (quantity, node)
    node = explain(step, Quantity("advantage", row=1, token=1))
    assert [q.name for q in node.inputs] == ["step_score"] * 3
    assert [q.token for q in node.inputs] == [1, 2, 3]


def _one_silent(step: Step) -> Step:
    """Return the step with one group whose steps have equal rewards, and one completion with a single step of two
    tokens.
    """
    assert step.step_rewards is not None
    paid = np.where(step.group[:, None] == 0, 1.0, step.step_rewards)
    paid[-1, :1] = np.nan
    return dataclasses.replace(step, step_rewards=paid, measurements={})


def test_groups_are_dead_by_their_steps() -> None:
    step = _one_silent(trained(CHAIN))
    assert recompute.dead_groups(step).tolist() == [True, False]
    assert not recompute.advantage(step)[step.group == 0].any()
    assert reasons(step, 0)["group:0"].chip == "all 1"
    alike = dataclasses.replace(step, rewards=np.ones(6), step_rewards=trained(CHAIN).step_rewards)
    assert not recompute.dead_groups(alike).any()
    assert "reward_std" not in reasons(alike, 0)


def test_it_is_kept_in_a_run_file_and_goes_on_from_there() -> None:
    first, second = trained(CHAIN), trained(CHAIN, 2)
    kept = decoded(*encoded(second), 2, CHAIN)
    assert kept.step_rewards is not None
    np.testing.assert_array_equal(kept.step_rewards, second.step_rewards)
    once_more = again(kept, CHAIN, decoded(*encoded(first), 1, CHAIN))
    np.testing.assert_array_equal(once_more.logp, second.logp)
    np.testing.assert_array_equal(once_more.step_rewards, second.step_rewards)


def test_the_same_batch_can_be_asked_for_the_other_credit() -> None:
    outcome = CHAIN.replace({"objective.credit": "outcome"})
    ran = trained(outcome)
    assert recompute.advantage(ran).shape == (6,)
    np.testing.assert_array_equal(
        recompute.advantage(recompute.under(ran, CHAIN)),
        recompute.advantage(trained(CHAIN)),
        "the first batch is the same",
    )
    old = dataclasses.replace(ran, step_rewards=None)  # as older files have it
    with pytest.raises(SettingsError, match="no rewards for steps"):
        recompute.advantage(recompute.under(old, CHAIN))
    assert math.isnan(explain(old, Quantity("step_reward", row=0)).value)
    assert math.isnan(explain(ran, Quantity("step_score", row=0)).value)


@pytest.mark.parametrize("credit", ["outcome", "process"])
def test_a_what_if_turns_one_into_the_other(credit: str) -> None:
    """The first update of both runs samples the same batch, so the what-if of one equals the other, up to its last
    pass.
    """
    other = {"outcome": "process", "process": "outcome"}[credit]
    ran, wanted = (CHAIN.replace({"objective.credit": kind}) for kind in (credit, other))
    asked = what_if(trained(ran), wanted)
    np.testing.assert_array_equal(asked.other.step.logp, trained(wanted).logp)
    np.testing.assert_array_equal(asked.other.advantage, recompute.advantage(trained(wanted)))
    assert not any("advantages are the same" in said for said in unchanged(asked, 0))


@pytest.mark.parametrize(("baseline", "std"), list(product(BASELINES, SCALES)))
def test_the_exported_script_prints_the_same_numbers(baseline: str, std: str) -> None:
    settings = CHAIN.replace({"objective.baseline": baseline, "objective.std": std})
    for step in (trained(settings), _one_silent(trained(settings))):
        compare(step, executed(step_script(step, origin(settings))), 1e-9)


@pytest.mark.parametrize(
    ("settings", "changes", "field"),
    [
        (CHAIN, {"objective.baseline": "leave_one_out"}, "objective.baseline"),
        (CHAIN, {"objective.baseline": "given", "learner.critic": True}, "objective.baseline"),
        (CHAIN, {"objective.kl_in": "reward"}, "objective.kl_in"),
        (CHAIN, {"task.landscape": "length"}, "objective.credit"),
        (language_settings(), {"objective.credit": "process"}, "objective.credit"),
        (CHAIN, {"task.faulty_action": 0}, "task.faulty_action"),
    ],
)
def test_what_has_no_steps_is_refused_in_a_sentence(settings: Settings, changes: dict[str, object], field: str) -> None:
    with pytest.raises(SettingsError) as caught:
        settings.replace(changes)
    assert caught.value.field == field
