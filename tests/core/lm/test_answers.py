"""Questions about an update, answered by a copy of its policy: typed completions, and the update repeated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from grpo_core.config import PRESETS, Settings
from grpo_core.errors import Cancelled, GrpoError, SettingsError
from grpo_core.lm.answers import Answering
from grpo_core.progress import unpolled
from grpo_core.questions import Answer, Question, Replay, Replayed
from grpo_core.record import Step
from grpo_core.what_if import what_if
from tests.core.lm.test_learner import run, same, small, steps
from tests.polls import cancelled_at

QUESTION = Question(step=3, group=0, completion="14=14")


SETTINGS = small(optimizer__learning_rate=1e-2)


def scored(answering: Answering, step: Step, history: list[Step], question: Question = QUESTION) -> Answer:
    answer = answering(question, step, history, unpolled)
    assert isinstance(answer, Answer)
    return answer


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
    one, other = (scored(answering, each[2], each[:2]) for each in (first, whole))
    fresh = scored(Answering(), whole[2], whole[:2])
    assert np.array_equal(other.logp, fresh.logp)
    assert not np.array_equal(one.logp, other.logp)


def test_a_second_question_about_an_update_replays_nothing(whole: list[Step]) -> None:
    answering = Answering()
    first = scored(answering, whole[2], whole[:2])
    again = scored(answering, whole[2], [])  # without a history it could not be replayed
    assert np.array_equal(first.logp, again.logp)


def test_a_cancelled_question_leaves_the_next_one_right(whole: list[Step]) -> None:
    answering = Answering()
    with pytest.raises(Cancelled):
        answering(QUESTION, whole[2], whole[:2], cancelled_at(0))
    right = scored(answering, whole[2], whole[:2])
    assert np.array_equal(right.logp, scored(Answering(), whole[2], whole[:2]).logp)


def test_each_place_has_the_distribution_that_its_token_was_taken_from(whole: list[Step]) -> None:
    answer = scored(Answering(), whole[2], whole[:2])
    assert answer.dist_logp.shape == (6, 20)
    assert np.array_equal(answer.dist_logp[np.arange(6), answer.tokens], answer.logp)
    assert answer.logp.shape == answer.ref_logp.shape == (6,)


@pytest.mark.parametrize("group", [-1, 2])
def test_a_prompt_that_is_not_there_is_told(group: int) -> None:
    step = steps(small(), 1)[0]
    with pytest.raises(GrpoError, match=f"Update 1 has no prompt {group + 1}"):
        Answering()(Question(step=1, group=group, completion="1"), step, [], unpolled)


STRUCTURE = ("logp", "dist_logp", "old_logp", "ref_logp", "values")


def asked(answering: Answering, whole: list[Step], number: int, settings: Settings) -> Replayed:
    question = Replay(step=number, settings=settings)
    answer = answering(question, whole[number - 1], whole[: number - 1], unpolled)
    assert isinstance(answer, Replayed)
    return answer


@pytest.mark.parametrize("changes", [{}, {"learner__mu": 2, "learner__critic": True, "objective__kl": "exact"}])
def test_under_its_own_settings_it_is_the_recorded_update_bit_for_bit(changes: dict[str, Any]) -> None:
    whole = steps(small(**changes), 3)
    answering = Answering()
    for number in (3, 1):
        answer = asked(answering, whole, number, whole[number - 1].settings)
        assert {"logp", "dist_logp"} <= answer.arrays.keys()
        for name, x in answer.arrays.items():
            assert np.array_equal(x, getattr(whole[number - 1], name)), name
        assert answer.measurements["grad_norm"] == whole[number - 1].measurements["grad_norm"]


@pytest.mark.parametrize("preset", ["Dr. GRPO", "GSPO", "PPO-clip", "RLOO"])
def test_it_is_the_update_that_a_run_under_those_settings_would_have_made(preset: str) -> None:
    whole = steps(small(), 3)
    wanted = PRESETS[preset].applied_to(whole[2].settings).replace({"learner.mu": 2, "optimizer.learning_rate": 1e-3})
    going = run(small(), history=whole[:2])
    going.settings = wanted
    expected = next(going)
    assert np.array_equal(expected.tokens, whole[2].tokens), "those settings draw the same"
    answer = asked(Answering(), whole, 3, wanted)
    w = what_if(whole[2], wanted, answer=answer)
    assert w.other.step.scored_after and w.other.passes == 2
    for name in STRUCTURE:
        one, other = getattr(w.other.step, name), getattr(expected, name)
        assert (one is None and other is None) or np.array_equal(one, other), name
    assert np.array_equal(w.other.advantage, what_if(expected, expected.settings).ran.advantage)


def test_the_model_that_trains_is_untouched_and_so_is_the_copy() -> None:
    alone = steps(small(learner__mu=2), 5)
    going, answering, made = run(small(learner__mu=2)), Answering(), list[Step]()
    wild = small(learner__mu=3, learner__critic=True, optimizer__kind="sgd", optimizer__learning_rate=0.5)
    for _ in range(5):
        made.append(next(going))
        typed = Question(step=len(made), group=0, completion="14=14")
        before = scored(answering, made[-1], made[:-1], typed)
        first = asked(answering, made, len(made), wild)
        again = asked(answering, made, len(made), wild)
        assert np.array_equal(first.arrays["logp"], again.arrays["logp"]), "the copy stands where it stood"
        after = scored(answering, made[-1], made[:-1], typed)
        assert np.array_equal(before.logp, after.logp)
    assert all(same(one, other) for one, other in zip(alone, made, strict=True))
    for one, other in zip(alone, made, strict=True):
        assert one.resume.keys() == other.resume.keys()
        assert all(np.array_equal(one.resume[name], other.resume[name]) for name in one.resume)


def test_the_learner_itself_stands_where_it_stood() -> None:
    whole = steps(small(), 4)
    going = run(small(), history=whole[:3])
    state = {name: x.copy() for name, x in going.policy.state().items()}
    made = going.again(whole[3], small(learner__mu=3, optimizer__learning_rate=0.1, optimizer__kind="sgd"))
    assert made.passes == 3 and not made.resume
    for name, x in going.policy.state().items():
        assert np.array_equal(x, state[name]), name
    assert same(next(going), whole[3])


def test_what_is_not_finite_is_refused_and_leaves_the_copy_right() -> None:
    whole = steps(small(), 2)
    answering = Answering()
    wild = whole[1].settings.replace(
        {
            "optimizer.learning_rate": 1e3,
            "optimizer.kind": "sgd",
            "learner.mu": 40,
            "optimizer.max_grad_norm": None,
            "objective.surrogate": "log_prob",
        }
    )
    with pytest.raises(GrpoError, match=r"Under these settings the loss of pass \d+ of update 2 would not be a finite"):
        asked(answering, whole, 2, wild)
    answer = asked(answering, whole, 2, whole[1].settings)
    assert np.array_equal(answer.arrays["logp"], whole[1].logp)


def test_a_cancelled_one_leaves_the_next_one_right() -> None:
    whole = steps(small(), 2)
    answering = Answering()
    question = Replay(step=2, settings=whole[1].settings)
    with pytest.raises(Cancelled):
        answering(question, whole[1], whole[:1], cancelled_at(3))
    answer = asked(answering, whole, 2, whole[1].settings)
    assert np.array_equal(answer.arrays["logp"], whole[1].logp)


def test_structural_settings_are_refused() -> None:
    whole = steps(small(), 2)
    with pytest.raises(SettingsError, match="start a new run"):
        asked(Answering(), whole, 2, whole[1].settings.replace({"seed": 99}))
    with pytest.raises(GrpoError, match="without the updates before it"):
        run(small(), history=whole[:1]).again(whole[0], whole[0].settings)
