"""A predicted number: counts are whole, everything else is not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.lessons.prediction import Placed, guess_text, in_words, result_text
from app.lessons.value import Value, plain
from tests.app.lessons.held import lesson_of


@pytest.mark.parametrize(("value", "count", "share"), [(0.0, "0", "0.000"), (1.0, "1", "1.000"), (5.0, "5", "5")])
def test_a_count_has_no_decimals(value: float, count: str, share: str) -> None:
    assert (plain(value, counts=True), plain(value)) == (count, share)


def test_a_lesson_that_asks_how_many_names_whole_numbers() -> None:
    predictions = [step.predict for step in lesson_of("pretrained").steps if step.predict is not None]
    counted = next(prediction for prediction in predictions if prediction.answer.check == "bare")
    share = next(prediction for prediction in predictions if prediction.answer.check == "lowest_after")
    assert (counted.counts, share.counts) == (True, False)
    assert result_text(counted, 0.0).endswith(": 0")
    assert guess_text(counted, Placed(0.0)) == "predicted: 0"
    assert result_text(share, 0.0).endswith(": 0.000")


def test_a_count_is_guessed_in_whole_numbers(qtbot: QtBot) -> None:
    box = Value("How many?", 0.0, 3.0, counts=True)
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
    with pytest.raises(ValueError, match="'rank' is no kind"):
        in_words(replace(prediction, kind="rank"), 1.0)
