"""A lesson in front of a class: larger type, its own count, and docks that are restored in any order."""

from __future__ import annotations

from functools import partial

import pytest
from PySide6.QtCore import QRect, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QToolBar, QWidget

from app.teaching.lessons.catalogue import lessons
from app.teaching.lessons.speaker_notes import notes_of
from app.teaching.presenting.screens import LESSON_SPACE, SPACE, fitting_scale
from grpo_core.teaching.lessons import Lesson, spoken
from tests.app.conftest import Driver
from tests.app.teaching.lessons.held import lesson_of
from tests.app.teaching.presenting.hands import asking, open_lesson, places, press, settle, start, start_at

pytestmark = pytest.mark.one_window
Key = Qt.Key


def test_a_lesson_counts_its_own_steps_in_larger_type_and_nothing_lies_over_a_black_screen(driver: Driver) -> None:
    program, presenter = driver.program, driver.program.part("teaching").presenter
    start(driver)
    run_scale = program.look.scale
    assert not presenter.counter.isHidden()
    open_lesson(driver, lesson_of("one_update"))
    assert presenter.counter.isHidden(), "it would lie over the lesson's buttons"
    assert program.look.scale >= run_scale
    presenter.toggle_blank()
    program.window.docks["lesson"].raise_()
    driver.settle()

    def top() -> QWidget:
        return [one for one in program.window.children() if isinstance(one, QWidget)][-1]

    driver.qtbot.waitUntil(lambda: top() is presenter.blank)
    presenter.toggle_blank()
    program.part("teaching").lessons.player.leave()
    settle(driver)
    assert not presenter.counter.isHidden()
    assert program.look.scale == run_scale
    presenter.stop()
    settle(driver)
    assert presenter.counter.isHidden()


@pytest.mark.quick_cases("True-False", "False-True")
@pytest.mark.parametrize("lesson_first", [True, False])
@pytest.mark.parametrize("lesson_left_first", [True, False])
def test_a_lesson_and_a_class_give_the_docks_back_in_any_order(
    driver: Driver, lesson_first: bool, lesson_left_first: bool
) -> None:
    program, window = driver.program, driver.program.window
    window.resize(1366, 768)
    window.docks["training_history"].hide()
    driver.settle()
    before = set(places(driver))
    coming = [partial(open_lesson, driver, lesson_of("one_update")), program.part("teaching").presenter.start]
    going = [program.part("teaching").lessons.player.leave, program.part("teaching").presenter.stop]
    for deed in (coming if lesson_first else coming[::-1]) + (going if lesson_left_first else going[::-1]):
        deed()
        settle(driver)
        if program.part("teaching").lessons.is_open:
            assert set(places(driver)) == {"lesson"}
    assert set(places(driver)) == before
    assert window.size().toTuple() == (1366, 768)


def test_a_class_sees_one_question_one_picture_and_one_number(driver: Driver) -> None:
    program, window = driver.program, driver.program.window
    start(driver)
    open_lesson(driver, lesson_of("build_group"), 1)
    page = program.part("teaching").lessons.panel.page
    assert page is not None
    question = lesson_of("build_group").steps[1].predict
    assert question is not None
    assert page.question.isVisible()
    assert page.question.text() == question.ask
    assert not page.prediction.ask.isVisible(), "it stands once"
    program.part("teaching").lessons.player.skip()
    settle(driver)
    box = page.prediction
    assert (box.number.text(), box.name.text()) == ("2.47", "Advantage of the right answer")
    assert box.number.font().pixelSize() > 0.1 * page.height()
    assert box.number.fontMetrics().horizontalAdvance(box.number.text()) <= box.width()
    seen = [label.text() for label in page.findChildren(QLabel) if label.isVisible()]
    assert not [text for text in seen if "Skipped" in text], "nobody in the class has skipped anything"
    assert not page.bar.open.isVisible()
    assert not [bar for bar in window.findChildren(QToolBar) if bar.isVisible()]
    assert not window.docks["lesson"].titleBarWidget().height()
    program.part("teaching").lessons.player.next()
    program.part("teaching").lessons.player.leave()
    program.part("teaching").presenter.stop()
    settle(driver)
    assert program.transport.isVisible()


@pytest.mark.parametrize("window", ["class", "speaker"])
def test_escape_ends_presenting_and_only_then_leaves_the_lesson(driver: Driver, window: str) -> None:
    """The first Esc used to end the lesson, and the own run stood full screen without menus."""
    program, teaching = driver.program, driver.program.part("teaching")
    player, presenter = teaching.lessons.player, teaching.presenter
    lesson, place = lesson_of("temperature"), 1
    predict = lesson.steps[place].predict
    assert predict is not None and predict.kind == "direction"
    open_lesson(driver, lesson, place)
    page = teaching.lessons.panel.page
    assert page is not None
    ink = page.title.palette().windowText().color()
    start(driver)
    if window == "speaker":
        presenter.speaker.show()
        presenter.speaker.activateWindow()
        driver.qtbot.waitUntil(presenter.speaker.isActiveWindow)
    press(driver, Key.Key_PageUp)
    assert player.place == 0, "a remote's buttons choose no answer"
    press(driver, Key.Key_PageDown, Key.Key_Up)
    presenter.toggle_blank()
    presenter.leave()
    assert presenter.active and not presenter.blank.isVisible(), "Esc on a black screen brings the picture back"
    press(driver, Key.Key_Escape)
    settle(driver)
    assert not presenter.active
    assert page.title.palette().windowText().color() == ink
    assert program.window.menuBar().isVisible() and not program.window.isFullScreen()
    assert (player.lesson, player.place, player.covered) == (lesson, place, True)
    program.window.activateWindow()
    driver.qtbot.waitUntil(program.window.isActiveWindow)
    press(driver, Key.Key_Return)
    assert player.placed[place].guess == 1.0, "up is up, whichever window had the keys, and the question kept them"
    press(driver, Key.Key_Escape)
    assert player.lesson is None


@pytest.mark.quick_cases("size2")
@pytest.mark.parametrize("size", [(1024, 768), pytest.param((1280, 720), marks=pytest.mark.long), (1920, 1080)])
def test_before_a_class_type_is_at_least_two_percent_of_the_height_and_nothing_is_cut(
    driver: Driver, size: tuple[int, int]
) -> None:
    teaching = driver.program.part("teaching")
    start_at(driver, size, LESSON_SPACE)
    open_lesson(driver, lesson_of("one_update"), 2)
    page = teaching.lessons.panel.page
    assert page is not None
    teaching.lessons.player.predict(1.1)
    settle(driver)
    labels = [
        page.question,
        page.prediction.number,
        page.prediction.name,
        page.prediction.result,
        page.prediction.sentence,
        page.text.label,
    ]
    for label in labels:
        assert label.isVisible()
        assert label.font().pixelSize() >= 0.02 * page.height(), label.text()
        assert label.height() + 1 >= (label.heightForWidth(label.width()) if label.wordWrap() else 0), label.text()


def test_the_speaker_reads_the_next_question_and_notes_for_every_step(driver: Driver) -> None:
    program, speaker = driver.program, driver.program.part("teaching").presenter.speaker
    lesson = lesson_of("one_update")
    program.actions["speaker"].trigger()
    open_lesson(driver, lesson)
    question = lesson.steps[1].predict
    assert question is not None
    assert speaker.next.text() == f"Question: {question.ask}"
    program.part("teaching").lessons.player.next()
    driver.settle()
    assert question.ask in speaker.now.text()
    assert speaker.next.text().startswith("The answer")
    program.part("teaching").lessons.player.leave()
    driver.settle()
    assert "Update 1 is computed" in speaker.next.text()
    assert not speaker.lesson.isVisible()


@pytest.mark.parametrize("lesson", lessons()[0], ids=lambda lesson: lesson.id)
def test_every_step_has_notes_for_the_speaker(lesson: Lesson) -> None:
    assert lesson.teaching is not None
    for place, step in enumerate(lesson.steps):
        notes = notes_of(step, lesson, place)
        assert f"Time for this step: {step.minutes:g} min" in notes
        assert lesson.teaching.misconception in notes
        assert lesson.teaching.say in notes
        assert lesson.teaching.disagrees in notes
        assert spoken(step.text) in notes
        assert step.speaker in notes
        assert step.predict is None or spoken(step.predict.reveal) in notes


def test_a_lesson_fills_a_screen_with_larger_type_than_a_run() -> None:
    sizes = [(QRect(0, 0, *size), SPACE, LESSON_SPACE) for size in ((1366, 768), (1920, 1080), (1280, 720), (800, 600))]
    scales = [(fitting_scale(room, run), fitting_scale(room, lesson)) for room, run, lesson in sizes]
    assert scales == [(1.0, 1.25), (1.5, 1.75), (1.0, 1.1), (0.8, 0.8)]


@pytest.mark.quick_cases("True-number")
@pytest.mark.parametrize("kind", ["number", "direction", "choice", "ghost"])
@pytest.mark.parametrize("presenting", [False, True])
def test_an_open_question_takes_its_keys_wherever_the_keyboard_is(driver: Driver, kind: str, presenting: bool) -> None:
    """Up and Down showed another update of the lesson's run, and with it the answer."""
    program = driver.program
    lesson, place = asking(kind)
    program.window.activateWindow()
    driver.qtbot.waitUntil(program.window.isActiveWindow)
    teaching = program.part("teaching")
    player, page = teaching.lessons.player, teaching.lessons.panel.page
    player.open(lesson, place)
    if presenting:
        program.actions["present"].trigger()
    driver.qtbot.waitUntil(lambda: not player.busy)
    driver.rest()
    assert player.covered and page is not None
    shown = program.workspace.cursor.step, driver.head
    page.bar.setFocus()
    for key in (Qt.Key.Key_Down, Qt.Key.Key_Down, Qt.Key.Key_Up):
        QTest.keyClick(program.window.focusWidget(), key)
        driver.settle()
        assert page.prediction.guess is not None
        assert (program.workspace.cursor.step, driver.head) == shown
    QTest.keyClick(program.window.focusWidget(), Qt.Key.Key_Return)
    assert not player.covered and player.placed[place].guess is not None
