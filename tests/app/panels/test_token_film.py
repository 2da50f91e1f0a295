"""What the film of an update shows and says about a group's completions at each moment."""

from __future__ import annotations

import dataclasses
from itertools import pairwise

import numpy as np
import pytest

from app.token_grid.token_film import Moment, advantage_bars, moment, stage_sentence
from app.workspace.cursor import Cursor, Stage
from app.workspace.view import fork_of
from tests.app.panels.conftest import view_of
from tests.core.lm_steps import lm_step


def at(stage: Stage, progress: float = 1.0, passed: int = -1) -> Cursor:
    return Cursor(step=3, stage=stage, passed=passed, progress=progress)


def test_the_fork_is_the_first_token_at_which_a_groups_completions_part() -> None:
    step = lm_step(3, dead=(1,))
    assert fork_of(step, 0) == 0
    assert fork_of(step, 1) is None, "every completion of a dead group is the same here"
    tokens = step.tokens.copy()
    tokens[:8] = tokens[0]
    tokens[5, 2] += 1
    assert fork_of(dataclasses.replace(step, tokens=tokens, mask=np.ones_like(step.mask)), 0) == 2


@pytest.mark.parametrize("stage", Stage)
def test_a_stages_film_reveals_more_and_more_and_ends_where_the_next_begins(stage: Stage) -> None:
    step = lm_step(3)
    shown = [moment(step, 0, at(stage, n / 10, 0 if stage is Stage.UPDATE else -1)) for n in range(11)]
    values = [(m.written, m.scored, m.advantage, m.pushed) for m in shown if m is not None]
    assert len(values) == 11
    assert all(a <= b for one, other in pairwise(values) for a, b in zip(one, other, strict=True))
    assert values[0] != values[-1]
    if stage is not Stage.UPDATE:
        following = moment(step, 0, at(Stage(stage + 1), 0.0, 0 if stage is Stage.NORMALIZE else -1))
        assert following is not None
        assert (following.written, following.scored, following.advantage, following.pushed) == values[-1]


def test_the_end_of_the_film_is_the_whole_update() -> None:
    step = lm_step(3)
    last = moment(step, 0, at(Stage.UPDATE, 1.0, 0))
    longest = int(step.mask[step.group == 0].sum(axis=-1).max())
    assert last == Moment(written=longest, scored=8, advantage=1.0, pushed=1.0, fork=0)
    assert moment(step, 0, Cursor(step=3)) is None, "nothing is hidden and nothing lit"


def test_the_fork_lights_up_as_soon_as_it_is_written() -> None:
    step = lm_step(3)
    before, after = moment(step, 0, at(Stage.SAMPLE, 0.0)), moment(step, 0, at(Stage.SAMPLE, 0.2))
    assert before is not None and after is not None
    assert (before.fork, after.fork) == (None, 0)


@pytest.mark.parametrize(
    ("stage", "words"),
    [
        (Stage.SAMPLE, "Sample: 8 answers; they diverge at token 1."),
        (Stage.SCORE, "Score: 3 of 8 are right; the mean of the rewards is 0.375."),
        (Stage.NORMALIZE, "their sum is 0.000."),
        (Stage.UPDATE, "Update 3: token 1, where 8 answers diverge, is pushed up in 3, down in 5."),
    ],
)
def test_every_stage_says_one_sentence_that_stays_throughout_its_film(stage: Stage, words: str) -> None:
    view = view_of(lm_step(3))
    said = {stage_sentence(view, 0, at(stage, progress)) for progress in (0.0, 0.5, 1.0)}
    assert len(said) == 1
    assert said.pop().endswith(words)


def test_a_group_without_a_signal_is_said_to_push_nothing() -> None:
    view = view_of(lm_step(3, dead=(1,)))
    assert stage_sentence(view, 1, at(Stage.SAMPLE)) == "Sample: 8 answers, all the same."
    assert "every advantage is 0" in stage_sentence(view, 1, at(Stage.NORMALIZE))


def test_advantages_stand_as_bars_that_agree_with_them_in_sign() -> None:
    view = view_of(lm_step(3))
    bars = advantage_bars(view, 0)
    assert bars is not None and view.step is not None and view.advantage is not None
    assert np.abs(bars).max() == 1.0
    assert np.array_equal(np.sign(bars), np.sign(view.advantage[view.step.group == 0]))
