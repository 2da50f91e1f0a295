"""Answers of the shipped model before any training: recorded once, and compared with the model's answers here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from grpo_core.config import language_settings
from grpo_core.host.language import AnsweringLearner
from grpo_core.learners import language_learner
from grpo_core.lm import recorded_answers as recorded
from grpo_core.lm.rewards import origin
from grpo_core.progress import unpolled
from grpo_core.questions import FirstAnswers, FixedAnswers, answer_from_json, question_from_json
from grpo_core.record import Step
from grpo_core.shipped import CHECKPOINT, resource
from grpo_core.texts import tokens_text
from tools.make_answers import answered

PROMPTS = origin(language_settings()).watched


@pytest.fixture(autouse=True)
def _read_anew() -> Iterator[None]:
    recorded.known_answers.cache_clear()
    yield
    recorded.known_answers.cache_clear()


def test_the_recorded_answers_are_those_of_the_shipped_weights() -> None:
    assert dict(zip(PROMPTS, recorded.recorded_answers(language_settings(), PROMPTS), strict=True)) == answered()


def test_a_loaded_model_answers_before_its_first_update_what_that_records_and_is_not_changed_by_it() -> None:
    settings = language_settings().replace({"task.prompts": 1, "learner.group_size": 2, "task.max_tokens": 16})

    def learner() -> AnsweringLearner:
        return AnsweringLearner(language_learner(settings, [], unpolled), unpolled)

    asked, other = learner(), learner()
    answers = asked.ask(FirstAnswers(run="one.grpo"), None, _no_update)
    assert isinstance(answers, FixedAnswers)
    texts = tuple(tokens_text(row, origin(settings)) for row in answers.tokens)
    assert texts == recorded.recorded_answers(settings, PROMPTS)
    first, same = next(asked), next(other)
    assert first.watched_tokens is not None
    assert tuple(tokens_text(row, origin(settings)) for row in first.watched_tokens) == texts
    assert first.tokens.tolist() == same.tokens.tolist()
    assert first.logp.tolist() == same.logp.tolist()


def test_the_question_and_its_answer_cross_as_lines() -> None:
    question, answer = FirstAnswers(run="one.grpo"), FixedAnswers(tokens=((9, 0), (6, 11, 0)))
    assert question_from_json(question.to_json()) == question
    assert answer_from_json(question, answer.to_json()) == answer
    for line in ('{"tokens": [1]}', '{"tokens": [["1"]]}'):
        with pytest.raises(ValueError, match="tokens"):
            answer_from_json(question, line)


def _no_update(number: int) -> Step:
    raise AssertionError(f"there is no update {number}")


def test_an_answer_is_cut_off_where_the_models_is() -> None:
    short = language_settings().replace({"task.max_tokens": 3})
    assert {len(answer or "") for answer in recorded.recorded_answers(short, PROMPTS)} == {2, 3}


@pytest.mark.parametrize(
    ("changes", "prompts"),
    [({"model.checkpoint": "untrained"}, PROMPTS), ({}, ("what is new?", "1+1"))],
    ids=["other weights", "other prompts"],
)
def test_nothing_is_claimed_of_other_weights_and_other_prompts(
    changes: dict[str, str], prompts: tuple[str, ...]
) -> None:
    settings = language_settings().replace(changes)
    assert recorded.recorded_answers(settings, prompts) == (None,) * len(prompts)


@pytest.mark.parametrize("content", ["", "{}", '{"sha256": "of other weights", "answers": {"9-1=": "7⏎"}}', "[]"])
def test_a_file_of_other_weights_or_a_broken_one_says_nothing(
    content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "answers.json").write_text(content, encoding="utf-8")
    where = {recorded.ANSWERS: tmp_path / "answers.json", CHECKPOINT: resource(CHECKPOINT)}
    monkeypatch.setattr(recorded, "resource", where.__getitem__)
    assert recorded.recorded_answers(language_settings(), PROMPTS) == (None,) * len(PROMPTS)
