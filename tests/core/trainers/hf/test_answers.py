"""The loaded model from a folder answers questions itself, the time of an update among them, and then continues as if
none had been asked.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from grpo_core.errors import Cancelled, GrpoError
from grpo_core.host.buffer import Buffer
from grpo_core.host.commands import Begin
from grpo_core.host.language import AnsweringLearner
from grpo_core.host.live_run import LiveRun
from grpo_core.learners import language_learner, origin
from grpo_core.progress import unpolled
from grpo_core.questions import (
    Answer,
    FirstAnswers,
    FixedAnswers,
    Question,
    Replay,
    Replayed,
    answer_from_json,
    question_from_json,
)
from grpo_core.record import Step
from grpo_core.texts import answer_tokens, tokens_text
from grpo_core.trainers.hf import folder_policy as policy
from grpo_core.trainers.hf.folder import ModelFiles, look
from grpo_core.trainers.hf.learner import FolderLearner
from grpo_core.trainers.hf.loading import Loaded, load
from grpo_core.update_time import UpdateTime, UpdateTimeQuestion
from tests.core.host.test_process import said_of_an_update
from tests.core.trainers.hf.test_policy import run, same
from tests.core.trainers.hf.tiny import small

UPDATES = 3


@pytest.fixture(scope="module")
def going(folders: dict[str, Path]) -> tuple[FolderLearner, list[Step]]:
    learner = run(folders["llama"], task__max_tokens=30, model__snapshot_every=2)
    return learner, [next(learner) for _ in range(UPDATES)]


def ask(going: tuple[FolderLearner, list[Step]], number: int, question: Question | Replay) -> Answer | Replayed:
    learner, steps = going
    start = max((step.step for step in steps[: number - 1] if step.resume), default=1)
    return learner.answered(origin(steps[0].settings), question, steps[number - 1], steps[start - 1 : number - 1])


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_typed_completion_is_worth_what_it_was_to_the_policy_that_sampled_its_group(
    going: tuple[FolderLearner, list[Step]], number: int
) -> None:
    learner, steps = going
    typed = Question(step=number, group=1, completion="12")
    answer = ask(going, number, typed)
    assert isinstance(answer, Answer)
    own = answer.tokens
    step = steps[number - 1]
    batch = learner.policy.batch(step.prompt_tokens[1][None], own[None], np.ones((1, len(own)), bool))  # type: ignore[index]
    with learner.standing_before(step, steps[: number - 1]):
        expected = learner.policy.score(batch, 1.0, lambda done, total: None).logp[0].numpy()
    assert np.allclose(answer.logp, expected, atol=1e-5)
    assert answer.top_tokens is not None and answer.top_logp is not None
    assert answer.top_tokens.shape == (len(own), 5)
    assert (np.diff(answer.top_logp, axis=-1) <= 0.0).all(), "the likeliest first"
    assert answer.likeliest(0) == (answer.top_tokens[0, 0], answer.top_logp[0, 0])
    again = answer_from_json(question_from_json(typed.to_json()), answer.to_json())
    assert isinstance(again, Answer) and np.array_equal(again.top_tokens, answer.top_tokens)  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_an_update_asked_for_under_its_own_settings_is_itself(
    going: tuple[FolderLearner, list[Step]], number: int
) -> None:
    step = going[1][number - 1]
    answer = ask(going, number, Replay(step=number, settings=step.settings))
    assert isinstance(answer, Replayed)
    for name in ("old_logp", "logp", "entropy"):
        assert np.array_equal(answer.arrays.get(name, getattr(step, name)), getattr(step, name)), name


def test_the_run_goes_on_as_if_nobody_had_asked_and_loads_no_second_model(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = list[Path]()

    def counted(files: ModelFiles, device: torch.device, precision: str) -> Loaded:
        loaded.append(files.path)
        return load(files, device, precision)

    monkeypatch.setattr(policy, "load", counted)
    asked, undisturbed = run(folders["llama"], task__max_tokens=30), run(folders["llama"], task__max_tokens=30)
    steps = [next(asked), next(asked)]
    for number in (2, 1):
        ask((asked, steps), number, Question(step=number, group=0, completion="7"))
    for _ in steps:
        next(undisturbed)
    assert same(next(asked), next(undisturbed))
    assert len(loaded) == 2, "one for each run"


def test_a_completion_that_is_too_long_is_refused(going: tuple[FolderLearner, list[Step]]) -> None:
    with pytest.raises(GrpoError, match="at most 30"):
        ask(going, 2, Question(step=2, group=0, completion="9" * 40))


def test_where_every_weight_is_trained_it_is_said_why_there_is_no_answer(folders: dict[str, Path]) -> None:
    learner = run(folders["llama"], model__adapter_rank=0, optimizer__learning_rate=1e-5)
    step = next(learner)
    with pytest.raises(GrpoError, match="A run that trains an adapter"):
        ask((learner, [step]), 1, Question(step=1, group=0, completion="7"))


def test_the_marks_that_end_an_answer_are_no_part_of_its_text(going: tuple[FolderLearner, list[Step]]) -> None:
    where = origin(going[1][0].settings)
    tokens = np.array([where.vocabulary.index("7"), where.vocabulary.index("<|im_end|>"), -1])
    assert tokens_text(answer_tokens(tokens, where), where) == "7"


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


SMALL = {"task.prompts": 2, "learner.group_size": 2, "task.max_tokens": 3, "model.threads": 1}


def test_the_process_says_when_it_cannot_be_asked_as_a_model_is_read(folders: dict[str, Path]) -> None:
    found = said_of_an_update(look(folders["llama"]).settings.replace(SMALL))
    kinds = [(message["is"], message.get("model")) for message in found if message["is"] in ("loading", "loaded")]
    assert kinds == [("loading", False), ("loaded", None), ("loading", True), ("loaded", None)]
