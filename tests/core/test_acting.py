"""The settings reported as having an effect are those that change something."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from grpo_core import recompute
from grpo_core.acting import acting_fields
from grpo_core.config import PRESETS, Objective, Settings, about
from grpo_core.errors import SettingsError
from grpo_core.record import Step
from grpo_core.surrogates import SURROGATES
from tests.core.explain_cases import random_objective
from tests.core.steps import random_step

FIELDS = [field.name for field in dataclasses.fields(Objective) if field.name not in ("credit", "entropy_bonus")]
"""Fields tested with this batch. It lacks the step rewards and changing full distributions that the other two need."""


def batch() -> Step:
    settings = Settings().replace({"learner.critic": True})
    step = random_step(settings=settings, prompts=3, group_size=4, tokens=3, passes=2, contexts=3)
    values = np.random.default_rng(2).normal(size=step.mask.shape)
    sampling = step.old_logp - np.random.default_rng(3).normal(size=step.mask.shape)
    return dataclasses.replace(step, values=values, sampling_logp=sampling)


def numbers(step: Step, objective: Objective) -> list[np.ndarray]:
    """Return the advantage, loss and gradient of the second pass."""
    push, pull = recompute.token_gradient(step, 1, objective)
    return [
        recompute.advantage(step, objective),
        np.asarray(recompute.terms(step, 1, objective).loss),
        push if pull is None else push + pull,
    ]


def others(objective: Objective, name: str) -> list[Objective]:
    """Return the objective with every other allowed value of one field."""
    rule, value = about(Objective, name), getattr(objective, name)
    values: list[Any] = [choice for choice in rule.choices if choice != value]
    if isinstance(value, bool):
        values = [not value]
    elif not rule.choices:
        low, high = rule.usual or (0.1, 2.0)
        values = [low + (high - low) * share for share in (0.02, 0.3, 0.6)]
        values = [round(v) for v in values] if name == "max_tokens" else values
    allowed = []
    for other in values:
        try:
            allowed.append(objective.replace(**{name: other}))
        except SettingsError:
            continue
    return allowed


@pytest.mark.parametrize("seed", range(40))
def test_a_setting_that_does_not_act_changes_nothing(seed: int) -> None:
    objective = random_objective(np.random.default_rng(seed))
    step, acting = batch(), acting_fields(objective)
    before = numbers(step, objective)
    for name in FIELDS:
        if name in acting:
            continue
        for other in others(objective, name):
            for one, two in zip(before, numbers(step, other), strict=True):
                np.testing.assert_array_equal(one, two, err_msg=name)


def test_every_setting_acts_somewhere() -> None:
    step, idle = batch(), set(FIELDS)
    for seed in range(60):
        objective = random_objective(np.random.default_rng(seed))
        before = numbers(step, objective)
        for name in sorted(idle & acting_fields(objective)):
            for other in others(objective, name):
                same = (np.array_equal(x, y) for x, y in zip(before, numbers(step, other), strict=True))
                if not all(same):
                    idle.discard(name)
    assert idle == set()


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_every_setting_that_is_shown_under_a_surrogate_acts_somewhere_under_it(surrogate: str) -> None:
    step, shown, acted = batch(), set[str](), set[str]()
    for seed in range(20):
        drawn = random_objective(np.random.default_rng(seed))
        objective = drawn.replace(dual_clip=None, surrogate=surrogate)
        before = numbers(step, objective)
        shown |= acting_fields(objective) & set(FIELDS)
        for name in sorted(shown - acted):
            for other in others(objective, name):
                same = (np.array_equal(x, y) for x, y in zip(before, numbers(step, other), strict=True))
                if not all(same):
                    acted.add(name)
    assert shown - acted == set()


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_shows_no_knob_of_another_surrogate(name: str) -> None:
    objective = PRESETS[name].objective
    foreign = {knob for each in SURROGATES.values() for knob in each.knobs} - set(SURROGATES[objective.surrogate].knobs)
    assert not acting_fields(objective) & foreign


def test_under_a_critic_the_kl_in_the_reward_changes_nothing_and_a_warning_says_so() -> None:
    step, objective = batch(), Objective(baseline="given", kl_in="reward", beta=0.5)
    without = numbers(step, objective.replace(beta=0.0))
    assert all(np.array_equal(a, b) for a, b in zip(numbers(step, objective), without, strict=True))
    assert any("β has no effect" in sentence for sentence in objective.warnings)
