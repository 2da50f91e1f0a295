"""The answers of every shipped lesson, with several seeds, in the form in which a class reads them."""

from __future__ import annotations

import re

import pytest

from app.teaching.export.handout import answer_text
from app.teaching.export.lesson_stage import walked
from app.teaching.lessons.catalogue import lessons
from app.teaching.lessons.readable import reads_as
from grpo_core.teaching.lessons import Lesson, Prediction
from tests.app.teaching.lessons.held import lesson_of

SHIPPED = lessons()[0]
QUICK = "build_group"


def check_answers(lesson: Lesson) -> None:
    """Walk through ``lesson`` and assert that no answer has an exponent or the text of another choice's answer."""
    for step in walked(lesson):
        predict = lesson.steps[step.place].predict
        if predict is None or step.value is None or (lesson.block and predict.seeds == "own"):
            continue
        text = answer_text(predict, step.value)
        assert not re.search(r"\de[−+-]?\d", text), f"{predict.ask} {text}"
        assert not reads_as(predict, step.value), f"{predict.ask} {text}"
        assert predict.shown != "count" or not re.search(r"\d\.\d", text), f"{predict.ask} {text}"


@pytest.mark.long
@pytest.mark.parametrize("seeds", [0, 1, 2])
@pytest.mark.parametrize("lesson", SHIPPED, ids=lambda lesson: lesson.id)
def test_every_answer_of_a_lesson_can_be_read(lesson: Lesson, seeds: int) -> None:
    check_answers(lesson if not seeds else lesson.with_other_seeds(seeds))


def test_every_answer_of_a_lesson_without_runs_can_be_read() -> None:
    check_answers(lesson_of(QUICK))


def test_an_answer_that_reads_like_another_choices_is_found() -> None:
    asked = next(step.predict for step in reversed(lesson_of("token_loss").steps) if step.predict is not None)
    coded = Prediction(**{**vars(asked), "number": "Weight"})
    assert reads_as(coded, 0.00118) == "The same"
    assert reads_as(asked, 0.00118) == ""
