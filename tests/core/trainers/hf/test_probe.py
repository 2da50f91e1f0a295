"""The time of an update is measured without making one, and the measurement can be cancelled."""

from __future__ import annotations

from pathlib import Path

import pytest

from grpo_core.errors import Cancelled, GrpoError
from grpo_core.host.buffer import Buffer
from grpo_core.host.commands import Begin
from grpo_core.host.language import AnsweringLearner
from grpo_core.host.live_run import LiveRun
from grpo_core.learners import language_learner
from grpo_core.progress import unpolled
from grpo_core.questions import FirstAnswers, FixedAnswers, answer_from_json, question_from_json
from grpo_core.update_time import UpdateTime, UpdateTimeQuestion
from tests.core.trainers.hf.test_policy import run, same
from tests.core.trainers.hf.tiny import small


def test_the_parts_of_an_update_are_measured_and_the_run_stays_as_it_is(folders: dict[str, Path]) -> None:
    measured, undisturbed = run(folders["llama"]), run(folders["llama"])
    seconds = measured.update_time()
    assert seconds.sampling > 0 and seconds.learning > 0
    assert "as measured" in seconds.sentence and "CPU" in seconds.sentence
    assert same(next(measured), next(undisturbed))


def test_measuring_is_given_up_at_the_next_token(folders: dict[str, Path]) -> None:
    asked = [False]

    def poll() -> None:
        if asked[0]:
            raise Cancelled

    learner = run(folders["gpt2"], poll=poll)
    asked[0] = True
    with pytest.raises(Cancelled):
        learner.update_time()


@pytest.mark.parametrize(
    ("sampling", "learning", "expected"),
    [
        (0.0312, 0.5, ("0.53", "0.031", "0.5")),
        (4.06, 9.91, ("14", "4.1", "9.9")),
        (122.4, 1318.0, ("1,440", "122", "1,318")),
    ],
)
def test_seconds_are_never_written_as_powers_of_ten(
    sampling: float, learning: float, expected: tuple[str, str, str]
) -> None:
    sentence = UpdateTime(sampling=sampling, learning=learning, device="cpu").sentence
    whole, sampled, learned = expected
    assert f"up to {whole} s here (CPU): {sampled} s of sampling and {learned} s of learning" in sentence


def test_the_question_and_its_answer_cross_as_lines() -> None:
    question, answer = UpdateTimeQuestion(run="one.grpo"), UpdateTime(sampling=0.1, learning=2.0, device="cuda")
    assert question_from_json(question.to_json()) == question
    assert answer_from_json(question, answer.to_json()) == answer
    with pytest.raises(ValueError, match="seconds"):
        answer_from_json(question, '{"sampling": NaN, "learning": 1.0, "device": "cpu"}')


def test_it_is_asked_of_a_folders_model_before_its_first_update_alone(folders: dict[str, Path], tmp_path: Path) -> None:
    settings = small(folders["llama"])
    begin = Begin(run_id="one", path=tmp_path / "one.grpo", settings=settings, buffer=Buffer("one", settings))
    model = AnsweringLearner(language_learner(settings, [], unpolled), unpolled)
    live = LiveRun(begin, lambda *arguments, **named: model, unpolled)
    question = UpdateTimeQuestion(run="one")
    assert isinstance(live.answer(question), UpdateTime)
    answers = live.answer(FirstAnswers(run="one"))
    assert isinstance(answers, FixedAnswers)
    live.update(1)
    watched = live.earlier(1).watched_tokens
    assert watched is not None
    assert [[token for token in row if token >= 0] for row in watched.tolist()] == [[*row] for row in answers.tokens]
    with pytest.raises(GrpoError, match="recorded with it"):
        live.answer(question)
    live.output.close()
