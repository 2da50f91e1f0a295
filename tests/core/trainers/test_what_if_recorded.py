"""What-ifs on runs that other programs trained: each pass keeps its recorded policy, and only the loss changes."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from grpo_core import recompute
from grpo_core.config import PRESETS
from grpo_core.record import Step
from grpo_core.trainers.importers.trace import Trace
from grpo_core.what_if import notes, what_if
from tests.core.trainers.trace_files import DATA, HEALTHY, VERL

ASKED = ("DAPO", "Dr. GRPO", "CISPO", "GSPO", "RLOO", "REINFORCE")


def first_step(name: str) -> Step:
    return Trace(DATA / name).step(1)


@pytest.mark.parametrize("preset", ASKED)
@pytest.mark.parametrize("name", [*HEALTHY, VERL])
def test_every_pass_is_asked_at_the_log_probabilities_that_it_had(name: str, preset: str) -> None:
    step = first_step(name)
    asked = what_if(step, preset)
    other = asked.other.step
    assert (other.passes, asked.other.passes) == (step.passes, step.passes)
    np.testing.assert_array_equal(other.logp, step.logp[: step.passes])
    for passed in range(step.passes):
        push, pull = recompute.token_gradient(recompute.under(step, other.settings), passed)
        np.testing.assert_array_equal(asked.other.gradient(passed), push if pull is None else push + pull)


@pytest.mark.parametrize("name", [*HEALTHY, VERL])
def test_optimizer_and_passes_stay_those_of_the_run(name: str) -> None:
    step = first_step(name)
    wanted = step.settings.replace({"learner.mu": 7, "optimizer.learning_rate": 3.0, "objective.clip_high": 0.5})
    asked = what_if(step, wanted)
    settings = asked.other.step.settings
    assert (settings.learner, settings.optimizer) == (step.settings.learner, step.settings.optimizer)
    assert settings.objective.clip_high == 0.5
    assert sum("other weights" in sentence for sentence in notes(asked)) == 2


def test_without_a_recorded_reference_beta_stays_and_says_why() -> None:
    step = dataclasses.replace(first_step("entbonus"), ref_logp=None)
    assert step.settings.objective.beta == 0
    asked = what_if(step, step.settings.replace({"objective.beta": 0.1}))
    assert asked.other.step.settings.objective.beta == 0
    assert any("reference" in sentence for sentence in notes(asked))


def test_with_a_recorded_reference_beta_may_be_another_one() -> None:
    step = first_step("grpo")
    assert step.ref_logp is not None
    asked = what_if(step, step.settings.replace({"objective.beta": 1.0}))
    assert asked.other.step.settings.objective.beta == 1.0
    assert not np.array_equal(asked.other.gradient(1), asked.ran.gradient(1))


@pytest.mark.parametrize("preset", PRESETS)
def test_no_preset_promises_a_trajectory(preset: str) -> None:
    asked = what_if(first_step("grpo"), preset)
    said = " ".join(notes(asked))
    assert "not known" in said and "need the model" not in said
