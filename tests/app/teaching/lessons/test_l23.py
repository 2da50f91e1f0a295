"""L23: an agent's tokens and its tool's; the lesson's statements are checked against the model, seed by seed."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from app.teaching.lessons.interactives.sampled_answers import WhoseWords, marked, right_end, tool_logp, tool_share
from grpo_core.lm.learner import LanguageLearner
from grpo_core.record import Step
from tests.app.teaching.lessons.hands import Pupil
from tests.app.teaching.lessons.held import UP, known, settings_of

pytestmark = pytest.mark.one_window
GUESSES = {2: 2, 3: 0.9, 4: 1, 5: UP, 6: 1}


@cache
def trained(seed: int, masked: bool, updates: int = 30) -> tuple[Step, ...]:
    """Return the updates of the lesson's run."""
    settings = settings_of("whose_words").replace({"seed": seed, "task.mask_tool": masked})
    run = LanguageLearner(settings)
    return tuple(next(run) for _ in range(updates))


def shares(steps: tuple[Step, ...]) -> np.ndarray:
    return np.array([step.reward_parts[:, 0].mean() for step in steps if step.reward_parts is not None])


@pytest.mark.parametrize("seed", [5, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(20, 32))])
def test_what_it_says_of_the_two_runs_holds(seed: int) -> None:
    with_mask, without = (trained(seed, masked) for masked in (True, False))
    assert np.array_equal(with_mask[0].tokens, without[0].tokens), "the first batch is the same"
    assert right_end(shares(with_mask)) > 0.8 > 0.72 > right_end(shares(without)) > 0.4
    assert np.exp(tool_logp(without[0])) < 1e-3
    assert 2.0 < tool_logp(without[-1]) - tool_logp(without[0]) < 6.0
    assert tool_logp(with_mask[-1]) - tool_logp(with_mask[0]) < 2.0, "what is masked is hardly learned"


def test_the_tools_words_are_marked_and_counted() -> None:
    step = trained(5, True, 1)[0]
    assert marked("(47*8)376 (376+56)432 432") == "(47*8)‹376›(376+56)‹432›432" and marked("12") == "12"
    assert step.present is not None
    assert tool_share(step) == 1 - step.mask.sum() / step.present.sum() > 0.1


def test_its_pictures_say_what_is_in_the_loss(pupil: Pupil) -> None:
    pupil.open("whose_words")
    picture, view = pupil.picture, pupil.driver.program.workspace.view
    assert isinstance(picture, WhoseWords)
    assert "which the loss leaves out" in picture.note.text()
    assert any("‹" in str(row[2]) for row in picture.rows(view.step.step, view.run.origin))


@pytest.mark.long
def test_who_knows_the_answers_is_right_at_every_step(pupil: Pupil) -> None:
    known(pupil, "whose_words", GUESSES)
    picture = pupil.picture
    assert isinstance(picture, WhoseWords) and len(picture.curve.picture.lines) == 2, (
        "both runs stand beside each other"
    )
