"""Predictions by keyboard and answers, in the form in which a class reads them. Only counts are integers."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.teaching.export.handout import answer_text
from app.teaching.export.lesson_stage import walked
from app.teaching.lessons.catalogue import lessons
from app.teaching.lessons.inputs import Value
from app.teaching.lessons.prediction import Placed, PredictionBox, guess_text, result_text
from app.teaching.lessons.readable import number_text, readable, reads_as
from grpo_core.teaching.lessons import SHOWN, Lesson, Prediction, in_words
from tests.app.teaching.lessons.held import lesson_of


@pytest.mark.parametrize(
    ("value", "digits", "percent", "count"),
    [
        (0.0, "0", "0%", "0"),
        (1.0, "1", "100%", "1"),
        (0.002, "0.002", "< 1%", "0"),
        (0.75, "0.75", "75%", "1"),
        (1.93e-22, "about 0", "about 0", "0"),
        (-2.22e-16, "about 0", "about 0", "0"),
        (2.47423, "2.47", "247%", "2"),
        (26.53338, "26.5", "2653%", "27"),
        (82.855, "82.9", "8286%", "83"),
        (-0.151, "−0.151", "−15%", "0"),
        (12345.6, "12,346", "1234560%", "12,346"),
        (float("nan"), "—", "—", "—"),
    ],
)
def test_an_answer_reads_as_a_class_reads_it(value: float, digits: str, percent: str, count: str) -> None:
    assert [readable(value, form) for form in SHOWN] == [digits, percent, count]


def test_an_unknown_form_is_an_error() -> None:
    with pytest.raises(ValueError, match="'words' is not a way"):
        readable(1.0, "words")


def test_a_change_that_counts_as_none_reads_about_zero() -> None:
    asked = next(step.predict for step in lesson_of("credit").steps if step.settings.get("objective.reduction"))
    assert asked is not None
    assert (number_text(asked, 0.151), number_text(asked, 0.5)) == ("about 0", "0.5")


def test_a_percentage_is_typed_as_one(qtbot: QtBot) -> None:
    box = Value("What share?", 0.0, 1.0, form="percent")
    qtbot.addWidget(box)
    QTest.keyClicks(box, "43")
    assert box.guess == pytest.approx(0.43)
    assert box.accessibleDescription() == "43%"


def test_a_lesson_that_asks_how_many_names_whole_numbers() -> None:
    predictions = [step.predict for step in lesson_of("pretrained").steps if step.predict is not None]
    counted = next(prediction for prediction in predictions if prediction.answer.check == "bare")
    share = next(prediction for prediction in predictions if prediction.answer.check == "lowest_after")
    assert (counted.shown, share.shown) == ("count", "percent")
    assert result_text(counted, 0.0).endswith(": 0")
    assert guess_text(counted, Placed(0.0)) == "predicted: 0"
    assert result_text(share, 0.0).endswith(": 0%")


def test_a_count_is_guessed_in_whole_numbers(qtbot: QtBot) -> None:
    box = Value("How many?", 0.0, 3.0, form="count")
    qtbot.addWidget(box)
    box.put(1.4)
    assert box.guess == 1.0
    QTest.keyClick(box, Qt.Key.Key_Up)
    assert box.guess == 2.0
    QTest.keyClick(box, Qt.Key.Key_Down)
    QTest.keyClick(box, Qt.Key.Key_Down)
    assert box.guess == 0.0


def test_a_guess_of_an_unknown_kind_is_an_error() -> None:
    prediction = next(step.predict for step in lesson_of("pretrained").steps if step.predict is not None)
    with pytest.raises(ValueError, match="'rank' is not a kind"):
        in_words(replace(prediction, kind="rank"), 1.0)


def test_the_first_press_of_up_or_down_means_what_the_key_says_in_every_question(qtbot: QtBot) -> None:
    box = PredictionBox()
    qtbot.addWidget(box)
    placed: list[float] = []
    box.placed.connect(placed.append)
    asked = [step.predict for lesson in lessons()[0] for step in lesson.steps if step.predict is not None]
    assert sum(prediction.kind == "direction" for prediction in asked) == 31
    for prediction in asked:
        for key in (Qt.Key.Key_Up, Qt.Key.Key_Down):
            box.show_prediction(None, None)
            box.show_prediction(prediction, None)
            assert box.input is not None
            QTest.keyClick(box.input, key)
            QTest.keyClick(box.input, Qt.Key.Key_Return)
            guess, up = placed.pop(), key == Qt.Key.Key_Up
            match prediction.kind:
                case "direction":
                    assert in_words(prediction, guess) == ("up" if up else "down"), prediction.ask
                case "choice":
                    assert guess == 0, prediction.ask
                case _:
                    middle = (prediction.low + prediction.high) / 2
                    assert guess > middle if up else guess < middle, prediction.ask


def test_up_and_down_move_among_directions_once_one_is_chosen(qtbot: QtBot) -> None:
    box = PredictionBox()
    qtbot.addWidget(box)
    steps = lesson_of("one_update").steps
    asked = next(step.predict for step in steps if step.predict and step.predict.kind == "direction")
    box.show_prediction(asked, None)
    assert box.input is not None
    chosen = []
    for key in (Qt.Key.Key_Down, Qt.Key.Key_Down, Qt.Key.Key_Up, Qt.Key.Key_Up, Qt.Key.Key_Up, Qt.Key.Key_Down):
        QTest.keyClick(box.input, key)
        chosen.append(box.guess)
    assert chosen == [-1, -1, 0, 1, 1, 0]


@pytest.mark.quick_cases("build_group-0")
@pytest.mark.parametrize("seeds", [0, 1, 2])
@pytest.mark.parametrize("lesson", lessons()[0], ids=lambda lesson: lesson.id)
def test_every_answer_of_a_lesson_can_be_read(lesson: Lesson, seeds: int) -> None:
    told = lesson if not seeds else lesson.with_other_seeds(seeds)
    for step in walked(told):
        predict = told.steps[step.place].predict
        if predict is None or step.value is None or (told.block and predict.seeds == "own"):
            continue
        text = answer_text(predict, step.value)
        assert not re.search(r"\de[−+-]?\d", text), f"{predict.ask} {text}"
        assert not reads_as(predict, step.value), f"{predict.ask} {text}"
        assert predict.shown != "count" or not re.search(r"\d\.\d", text), f"{predict.ask} {text}"


def test_an_answer_that_reads_like_another_choices_is_found() -> None:
    asked = next(step.predict for step in reversed(lesson_of("token_loss").steps) if step.predict is not None)
    coded = Prediction(**{**vars(asked), "number": "Weight"})
    assert reads_as(coded, 0.00118) == "The same"
    assert reads_as(asked, 0.00118) == ""
