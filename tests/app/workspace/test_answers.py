"""Which completions are right is read from the record, whatever language the run was made in."""

from __future__ import annotations

import dataclasses

import numpy as np

from app.examples import example
from app.workspace import answers
from grpo_core.runs.reader import RunReader


def test_a_run_made_in_another_language_has_right_answers_too() -> None:
    with RunReader.open(example()) as run:
        step, origin = run.step(32), run.origin
    german = dataclasses.replace(origin, reward_names=("richtige Antwort", "Form", "Kürze"))
    here, there = (answers.right(step, one) for one in (origin, german))
    assert here is not None and there is not None
    np.testing.assert_array_equal(here, there)
    assert answers.words(step, 0, german) == answers.words(step, 0, origin) != ""
    assert answers.right(step, dataclasses.replace(origin, reward_names=())) is None
