"""The settings reported as having an effect are those that change something."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from grpo_core.acting import acting_fields
from grpo_core.config import PRESETS, Objective, Settings
from grpo_core.record import Step
from grpo_core.surrogates import SURROGATES
from grpo_core.testing.surrogates import others
from grpo_core.testing.surrogates import second_pass as numbers
from grpo_core.testing.updates import random_objective
from tests.core.steps import random_step

FIELDS = [field.name for field in dataclasses.fields(Objective) if field.name not in ("credit", "entropy_bonus")]
"""Fields tested with this batch. It lacks the step rewards and changing full distributions that the other two need."""


def batch() -> Step:
    settings = Settings().replace({"learner.critic": True})
    step = random_step(settings=settings, prompts=3, group_size=4, tokens=3, passes=2, contexts=3)
    values = np.random.default_rng(2).normal(size=step.mask.shape)
    sampling = step.old_logp - np.random.default_rng(3).normal(size=step.mask.shape)
    return dataclasses.replace(step, values=values, sampling_logp=sampling)


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


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_shows_no_knob_of_another_surrogate(name: str) -> None:
    objective = PRESETS[name].objective
    foreign = {knob for each in SURROGATES.values() for knob in each.knobs} - set(SURROGATES[objective.surrogate].knobs)
    assert not acting_fields(objective) & foreign
