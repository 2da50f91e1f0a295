"""What a question hides is covered, and restored with its answer. spoilers.py checks that nothing answers an open
question.
"""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.teaching.lessons.catalogue import lessons
from app.teaching.lessons.interactives.base import Cover
from app.teaching.lessons.interactives.memory_bill import MemoryBill
from app.theme.tokens import LIGHT
from app.widgets.calm import CalmSlider
from grpo_core.teaching.lessons import Lesson
from tests.app.teaching.lessons.hands import Pupil
from tests.app.teaching.lessons.held import lesson_of

pytestmark = pytest.mark.one_window

SHIPPED = lessons()[0]


@pytest.mark.parametrize("lesson", SHIPPED, ids=lambda lesson: lesson.id)
def test_what_a_question_hides_is_a_part_that_its_picture_knows(lesson: Lesson) -> None:
    for place, step in enumerate(lesson.steps, start=1):
        hidden = (*step.hides, *(step.predict.hides if step.predict is not None else ()))
        assert not hidden or lesson.interactive
        assert step.opening is not None or step.predict is None
        assert not step.hides or any(later.predict is not None for later in lesson.steps[place:]), "as the cover says"


@pytest.mark.parametrize("id", ["credit", "stale_samples"])
def test_a_question_about_many_runs_stands_beside_their_chart_and_not_another_steps_picture(id: str) -> None:
    asked = [step for step in lesson_of(id).steps if step.opening and step.show in ("lengths", "wrong", "policies")]
    assert [step.opening.show for step in asked if step.opening] == [step.show for step in asked] != []


def test_what_was_hidden_comes_back_with_the_answer_in_its_old_place(pupil: Pupil) -> None:
    pupil.open("same_rewards")
    assert not pupil.lesson_player.covered
    words = {cover.accessibleName() for cover in pupil.picture.findChildren(Cover)}
    assert words == {"Hidden until a later question is answered"}
    pupil.walk_to(3)
    curve = pupil.picture.parts["curve"][0]
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
    slider = pupil.picture.findChild(CalmSlider)
    assert slider is not None
    assert slider.isEnabled()
    pupil.walk_to(2)
    assert not slider.isEnabled(), "the answer could be read off after one drag"
    pupil.press(Qt.Key.Key_S)
    pupil.driver.settle()
    assert slider.isEnabled()


def test_the_bill_keeps_its_scale_when_models_are_switched_off(pupil: Pupil) -> None:
    bill = pupil.opened("memory_bill", MemoryBill).picture
    pupil.walk_to(3)  # its question is open: the bill with Adam's states is still shown
    full = bill.longest
    pupil.walk_to(4)
    pupil.press(Qt.Key.Key_S)
    assert sum(block.bytes for block in bill.blocks if block.model == "policy") < full / 2
    assert bill.longest == full
    assert lesson_of("memory_bill").steps[3].state["trained_share"] == 0.005


@pytest.mark.parametrize("width", [300, 500])
def test_a_cover_stays_where_its_part_would_be_when_something_else_takes_room(qtbot: QtBot, width: int) -> None:
    page, part, hint = QWidget(), QWidget(), QLabel("Predict first")
    hint.setFixedHeight(60)
    column = QVBoxLayout(page)
    column.addWidget(part, 1)
    column.addWidget(hint)
    hint.hide()
    qtbot.addWidget(page)
    page.resize(400, 300)
    page.show()
    cover = Cover(part)
    cover.put(LIGHT, 1.0)
    before = cover.geometry()
    hint.show()
    page.resize(width, 300)
    qtbot.waitUntil(lambda: part.geometry() != before and cover.geometry() == part.geometry())
    assert cover.geometry().bottom() < hint.y()
