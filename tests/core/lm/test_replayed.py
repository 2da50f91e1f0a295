"""An update repeated with other settings on a copy of the model, without affecting the model in training."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from grpo_core.config import PRESETS, Settings
from grpo_core.errors import Cancelled, GrpoError, SettingsError
from grpo_core.lm.answers import Answering
from grpo_core.progress import unpolled
from grpo_core.questions import Question, Replay, Replayed
from grpo_core.record import Step
from grpo_core.what_if import what_if
from tests.core.lm.test_learner import run, same, small, steps
from tests.polls import cancelled_at

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
        before = answering(typed, made[-1], made[:-1], unpolled)
        first = asked(answering, made, len(made), wild)
        again = asked(answering, made, len(made), wild)
        assert np.array_equal(first.arrays["logp"], again.arrays["logp"]), "the copy stands where it stood"
        after = answering(typed, made[-1], made[:-1], unpolled)
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
