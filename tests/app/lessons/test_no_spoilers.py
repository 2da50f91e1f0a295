"""While a question is open, nothing that can be seen, read in a table, or heard from a screen reader answers it."""

from __future__ import annotations

import math

import pytest
from _pytest.mark import ParameterSet
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton, QLabel, QWidget

from app.lessons.catalogue import lessons
from app.lessons.cover import Cover
from app.lessons.page import PARTLY_HIDDEN
from app.panels.registry import lesson_panels
from app.plotting.bar_chart import BarChart
from app.plotting.line_chart import LineChart
from app.plotting.numbers import shown
from grpo_core.learners import NO_TORCH
from grpo_core.lessons import Lesson, Prediction
from tests.app.lessons.hands import Pupil
from tests.app.lessons.held import lesson_of

SHIPPED = lessons(lesson_panels())[0]
SLOW = {"process_reward", "flight_deck", "fair_race", "family_tree", "group_size", "one_group", "credit", "temperature"}
"""Lessons with experiments of many seconds: their turn comes in the long tests."""


def _each() -> list[ParameterSet]:
    marks = {id: [pytest.mark.long] for id in SLOW}
    return [pytest.param(lesson, id=lesson.id, marks=marks.get(lesson.id, [])) for lesson in SHIPPED]


def _texts(window: QWidget) -> set[str]:
    """Every text of a widget that can be seen, what a screen reader says of it, and the numbers of its table."""
    found: set[str] = set()
    for widget in window.findChildren(QWidget):
        if widget.visibleRegion().isEmpty():
            continue
        found |= {widget.accessibleName(), widget.accessibleDescription()}
        if isinstance(widget, (QLabel, QAbstractButton)):
            found.add(widget.text())
        if isinstance(widget, (BarChart, LineChart)):
            found |= {shown(cell) for row in widget.table()[1] for cell in row if isinstance(cell, float)}
        if isinstance(widget, BarChart):
            found |= set(widget.picture.notes)
    return found - {""}


def _telling(predict: Prediction, value: float) -> bool:
    """Whether the number of an answer would give it away: it is asked for, and no number that stands anywhere."""
    digits = shown(value).strip("0.−")
    asked = predict.kind in ("number", "ghost")
    return asked and not math.isnan(value) and len(digits) >= 3 and shown(value) not in predict.ask


@pytest.mark.parametrize("lesson", _each())
def test_nothing_answers_a_question_that_is_open(pupil: Pupil, lesson: Lesson) -> None:
    player, window = pupil.lesson_player, pupil.driver.program.window
    for place, step in enumerate(lesson.steps):
        if step.predict is None:
            continue
        player.open(lesson, place)
        pupil.wait()
        if player.problem == NO_TORCH:
            continue
        assert player.covered
        texts = _texts(window)
        assert not pupil.page.text.isVisible()
        assert not pupil.page.prediction.result.isVisible()
        picture = pupil.page.interactive
        for part in player.hidden:
            assert picture is not None
            for widget in picture.parts().get(part, ()):
                assert not widget.isVisible(), f"{step.predict.ask} {part}"
            assert picture.accessibleDescription() == PARTLY_HIDDEN
        view = pupil.driver.program.workspace.view
        if step.predict.start is not None:
            assert view.cursor.step == step.predict.start
            assert view.head == step.predict.start or step.recorded, "the run has not come to the answer yet"
        pupil.press(Qt.Key.Key_S)
        value = player.placed[place].value
        assert value is not None
        if _telling(step.predict, value):
            assert not [text for text in texts if shown(value) in text], f"{step.predict.ask} {shown(value)}"


@pytest.mark.parametrize("lesson", SHIPPED, ids=lambda lesson: lesson.id)
def test_what_a_question_hides_is_a_part_that_its_picture_knows(lesson: Lesson) -> None:
    for step in lesson.steps:
        hidden = (*step.hides, *(step.predict.hides if step.predict is not None else ()))
        assert not hidden or lesson.interactive
        assert step.opening is not None or step.predict is None


def test_what_was_hidden_comes_back_with_the_answer_in_its_old_place(pupil: Pupil) -> None:
    pupil.open("same_rewards")
    pupil.walk_to(2)
    curve = pupil.picture.parts()["curve"][0]
    before = curve.geometry()
    (cover,) = [cover for cover in pupil.picture.findChildren(Cover) if cover.target is curve]
    assert cover.isVisible()
    assert cover.accessibleName() == "Hidden until the question is answered"
    pupil.press(Qt.Key.Key_S)
    pupil.driver.settle()
    assert curve.isVisible()
    assert not cover.isVisible()
    assert curve.geometry() == before


def test_nothing_can_be_tried_while_a_question_is_open(pupil: Pupil) -> None:
    pupil.open("same_rewards")
    slider = pupil.picture.findChild(QWidget, "chance")
    assert slider is not None
    assert slider.isEnabled()
    pupil.walk_to(2)
    assert not slider.isEnabled(), "the answer could be read off after one drag"
    pupil.press(Qt.Key.Key_S)
    pupil.driver.settle()
    assert slider.isEnabled()


def test_the_bill_keeps_its_scale_when_models_are_switched_off(pupil: Pupil) -> None:
    from app.lessons.interactives.memory_bill import MemoryBill

    pupil.open("memory_bill")
    assert isinstance(pupil.picture, MemoryBill)
    full = pupil.picture.picture.longest
    pupil.walk_to(4)
    pupil.press(Qt.Key.Key_S)
    assert sum(block.bytes for block in pupil.picture.picture.blocks if block.model == "policy") < full / 2
    assert pupil.picture.picture.longest == full
    assert lesson_of("memory_bill").steps[3].state["trained_share"] == 0.005
