"""How long an update takes is measured without making one, and can be given up."""

from __future__ import annotations

from pathlib import Path

import pytest

from grpo_core.errors import Cancelled
from tests.core.hf.test_policy import run, same


def test_the_parts_of_an_update_are_measured_and_the_run_stays_as_it_is(folders: dict[str, Path]) -> None:
    measured, undisturbed = run(folders["llama"]), run(folders["llama"])
    seconds = measured.measured()
    assert seconds.sampling > 0 and seconds.learning > 0
    assert "measured just now" in seconds.sentence and "CPU" in seconds.sentence
    assert same(next(measured), next(undisturbed))


def test_measuring_is_given_up_at_the_next_token(folders: dict[str, Path]) -> None:
    asked = [False]
    learner = run(folders["gpt2"], cancelled=lambda: asked[0])
    asked[0] = True
    with pytest.raises(Cancelled):
        learner.measured()
