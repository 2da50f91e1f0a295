"""Completions typed by the user, scored by the policy of an update."""

from __future__ import annotations

import numpy as np
import pytest

from grpo_core.errors import Cancelled, GrpoError
from grpo_core.lm.answers import Answering
from grpo_core.progress import unpolled
from grpo_core.questions import Question
from grpo_core.record import Step
from tests.core.lm.test_learner import run, small, steps
from tests.polls import cancelled_at

QUESTION = Question(step=3, group=0, completion="14=14")


SETTINGS = small(optimizer__learning_rate=1e-2)


@pytest.fixture(scope="module")
def whole() -> list[Step]:
    """The first three updates of a run."""
    return steps(SETTINGS, 3)


def test_another_run_with_the_same_settings_is_asked_itself(whole: list[Step]) -> None:
    going = run(SETTINGS.replace({"task.difficulty": "hard"}))
    first = [next(going), next(going)]
    going.settings = SETTINGS
    first.append(next(going))
    assert first[2].settings == whole[2].settings
    answering = Answering()
    one, other = (answering(QUESTION, each[2], each[:2], unpolled) for each in (first, whole))
    fresh = Answering()(QUESTION, whole[2], whole[:2], unpolled)
    assert np.array_equal(other.logp, fresh.logp)
    assert not np.array_equal(one.logp, other.logp)


def test_a_second_question_about_an_update_replays_nothing(whole: list[Step]) -> None:
    answering = Answering()
    first = answering(QUESTION, whole[2], whole[:2], unpolled)
    again = answering(QUESTION, whole[2], [], unpolled)  # without a history it could not be replayed
    assert np.array_equal(first.logp, again.logp)


def test_a_cancelled_question_leaves_the_next_one_right(whole: list[Step]) -> None:
    answering = Answering()
    with pytest.raises(Cancelled):
        answering(QUESTION, whole[2], whole[:2], cancelled_at(0))
    right = answering(QUESTION, whole[2], whole[:2], unpolled)
    assert np.array_equal(right.logp, Answering()(QUESTION, whole[2], whole[:2], unpolled).logp)


def test_each_place_has_the_distribution_that_its_token_was_taken_from(whole: list[Step]) -> None:
    answer = Answering()(QUESTION, whole[2], whole[:2], unpolled)
    assert answer.dist_logp.shape == (6, 20)
    assert np.array_equal(answer.dist_logp[np.arange(6), answer.tokens], answer.logp)
    assert answer.logp.shape == answer.ref_logp.shape == (6,)


@pytest.mark.parametrize("group", [-1, 2])
def test_a_prompt_that_is_not_there_is_told(group: int) -> None:
    step = steps(small(), 1)[0]
    with pytest.raises(GrpoError, match=f"Update 1 has no prompt {group + 1}"):
        Answering()(Question(step=1, group=group, completion="1"), step, [], unpolled)
