"""Lessons are walked by keyboard, use their own run, and restore the user's position."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QRect, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from app.teaching.lessons.catalogue import lessons
from app.teaching.lessons.prediction import lesson_of
from app.training.controller import State
from app.window.docks import SEPARATOR, Dock
from app.workspace.cursor import Stage
from grpo_core.breakpoints import Breakpoint
from grpo_core.config import Settings, language_settings
from grpo_core.lm.interface import NUMPY, engine_of
from grpo_core.teaching.lessons import Lesson, LessonStep, as_told
from tests.app.teaching.lessons.hands import Pupil
from tests.app.teaching.lessons.held import DOWN, SAME, UP
from tests.app.teaching.lessons.held import lesson_of as shipped

Key = Qt.Key
SHIPPED = lessons()[0]
KNOWN: dict[str, dict[int, float]] = {
    "why_rl": {2: 0.94, 3: 1, 4: 0.02, 5: UP, 6: 2, 7: SAME, 8: 2},
    "difficulty": {2: 2, 3: 1, 4: 1, 5: 2, 6: UP, 7: DOWN},
    "temperature": {2: UP, 3: 0.0, 4: 1, 5: 1, 6: UP, 7: 1.0, 8: UP},
    "reward_hacking": {2: UP, 3: DOWN, 4: UP, 5: 1, 6: 0.66, 7: 1, 8: 0},
    "credit": {2: 2, 3: 7.0, 4: UP, 5: SAME, 6: 2},
    "critic_credit": {2: 0, 3: 2, 4: 1, 5: 1},
    "process_reward": {2: 0, 4: 24, 5: 1, 6: 2, 7: 2, 8: 2},
    "family_tree": {2: UP, 3: 1, 4: 3, 5: 1, 6: 1, 7: DOWN},
    "reported": {2: 2, 3: 6, 4: 21, 5: 0, 6: 0.71, 8: 0},
    "one_group": {2: 1, 4: 0.45, 5: UP, 6: 1, 7: 0.52},
    "pretrained": {2: 6, 3: 2, 4: 0.6, 5: 2, 6: 0, 7: 0, 8: 0, 9: 0.92},
    "whose_words": {2: 2, 3: 0.9, 4: 1, 5: UP, 6: 1},
    "widen_or_narrow": {2: 0.83, 3: DOWN, 4: 2, 5: 1, 6: 2},
    "stale_samples": {2: 1, 3: 0.9, 4: 1, 5: 0.36, 6: 2},
    "token_loss": {2: 1.62, 3: 1, 4: 1, 5: 1, 6: 0},
}
"""Lesson -> right predictions by step, counted from 1."""


@pytest.mark.quick_cases("build_group", "difficulty", "pretrained")
@pytest.mark.parametrize("lesson", SHIPPED, ids=lambda lesson: lesson.id)
def test_a_lesson_is_walked_to_its_end_and_the_run_agrees_with_every_sentence(pupil: Pupil, lesson: Lesson) -> None:
    pupil.open(lesson.id)
    placed = pupil.through(KNOWN.get(lesson.id, {}))
    asked = [step.predict for step in lesson.steps if step.predict is not None]
    for prediction, result in zip(asked, placed, strict=True):
        assert result.value is not None
        assert as_told(prediction, result.value), f"{prediction.ask} {result.value}"
        assert result.right or lesson.id not in KNOWN, f"{prediction.ask} {result.value}"
        assert lesson_of(prediction, result) != "" or not prediction.reveal
    assert pupil.driver.program.controller.state is State.IDLE or not lesson.steps[0].recorded
    progress = pupil.lesson_player.progress
    assert progress.reached[lesson.id].done
    assert len(progress.history) == len(asked)
    assert progress.score(lesson.id) == (sum(result.right for result in placed), len(asked))
    pupil.next()  # past the last step
    assert pupil.lesson_player.finished
    assert str(sum(result.right for result in placed)) in pupil.page.ending.result.text()
    pupil.press(Key.Key_Escape)
    assert pupil.lesson_player.lesson is None


def place(dock: Dock) -> QRect | None:
    """Return the visible rectangle of a dock, or None behind another tab, where Qt keeps the last visible size."""
    return None if dock.visibleRegion().isEmpty() else dock.geometry()


def test_the_user_finds_run_cursor_settings_and_layout_as_they_were(pupil: Pupil) -> None:
    program, workspace = pupil.driver.program, pupil.driver.program.workspace
    pupil.driver.run(12)
    workspace.editing.edit({"objective.beta": 0.7}, "A knob")
    workspace.move_to(5)
    workspace.show_stage(Stage.NORMALIZE)
    workspace.select(row=3)
    pupil.driver.settle()
    run, files = workspace.run, set(program.paths.runs.glob("*.grpo"))
    before = workspace.cursor, workspace.following, workspace.selection, workspace.editing.wanted
    program.actions["lessons"].trigger()
    pupil.driver.settle()
    docks = {name: (dock.isVisible(), place(dock)) for name, dock in program.window.docks.items()}
    stop = Breakpoint(series="loss", relation="above", value=-1e9)
    program.workspace.breakpoints.set_all((stop,))
    pupil.open(SHIPPED[0].id)
    pupil.walk_to(4)
    assert workspace.run is not run
    assert workspace.run is not None
    assert workspace.run.title.startswith("Lesson")
    pupil.press(Key.Key_Escape)
    assert pupil.lesson_player.lesson is None
    assert workspace.run is run
    assert (workspace.cursor, workspace.following, workspace.selection, workspace.editing.wanted) == before
    assert workspace.runs == [run]
    pupil.driver.qtbot.waitUntil(lambda: set(program.paths.runs.glob("*.grpo")) == files)
    for name, (visible, box) in docks.items():
        assert program.window.docks[name].isVisible() == visible, name
        assert place(program.window.docks[name]) == box, name
    assert program.workspace.breakpoints.all == (stop,)
    program.workspace.breakpoints.set_all(())
    workspace.follow()
    pupil.driver.run(3)
    assert run is not None
    assert run.head == 15
    assert run.settings_at(13).objective.beta == 0.7


def test_lessons_opened_and_closed_leave_no_separators_behind(pupil: Pupil) -> None:
    """Qt forgets the separators of removed arrangements, some of them still visible."""

    def separators() -> int:
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        return len(pupil.driver.program.window.findChildren(QWidget, SEPARATOR))

    found = []
    for lesson in ("one_update", "build_group", "one_update", "build_group"):
        pupil.open(lesson)
        pupil.press(Key.Key_Escape)
        pupil.driver.settle()
        found.append(separators())
    # the first lesson can start from the first screen, which has no separators
    assert found[1] == found[2] == found[3] > 0


def test_breakpoints_of_the_user_do_not_stop_a_lesson(pupil: Pupil) -> None:
    pupil.driver.program.workspace.breakpoints.set_all((Breakpoint(series="loss", relation="above", value=-1e9),))
    pupil.open("one_update")
    pupil.walk_to(8)
    pupil.press(Key.Key_S)
    assert pupil.driver.head == 100
    pupil.press(Key.Key_Escape)
    pupil.driver.program.player.run_n(10)
    pupil.driver.rest()
    assert pupil.driver.head == 1  # and stop the user's own again


def test_opening_in_the_full_app_keeps_the_lessons_run(pupil: Pupil) -> None:
    workspace = pupil.driver.program.workspace
    own = workspace.run
    pupil.open("one_update")
    pupil.walk_to(3)
    given = workspace.run
    pupil.press(Key.Key_O)
    pupil.driver.settle()
    assert pupil.lesson_player.lesson is None
    assert workspace.run is given
    assert own in workspace.runs
    assert any("lesson's run" in message for message in pupil.driver.messages)
    assert pupil.driver.program.window.docks["controls"].isVisible()
    pupil.driver.run(2)
    assert given is not None
    assert given.head == 3


def test_a_question_is_asked_for_once_and_then_skipped(pupil: Pupil) -> None:
    pupil.open("one_update")
    pupil.walk_to(3)
    assert pupil.lesson_player.covered
    assert not pupil.page.text.isVisible()
    assert pupil.picture.step.show == "advantage", "the answer is not to be seen"
    pupil.press(Key.Key_Space)
    assert pupil.lesson_player.covered
    assert "Predict first" in pupil.page.bar.note.text()
    pupil.press(Key.Key_Space)
    assert not pupil.lesson_player.covered
    assert pupil.page.prediction.result.text().startswith("Skipped.")
    assert pupil.picture.step.show == "ratio"
    entry = pupil.lesson_player.progress.history[-1]
    assert entry.skipped
    assert entry.value == 1.0
    pupil.press(Key.Key_Left)
    pupil.press(Key.Key_Right)
    assert pupil.page.prediction.result.text().startswith("Skipped."), "a question is answered once"


def test_walking_back_shows_the_step_before_as_it_was(pupil: Pupil) -> None:
    pupil.open("one_update")
    pupil.walk_to(7)
    pupil.press(Key.Key_S)
    assert pupil.driver.program.workspace.view.step.settings.bandit.landscape == "length"
    pupil.press(Key.Key_Left)
    view = pupil.driver.program.workspace.view
    assert view.step.settings.bandit.landscape == "single_peak"
    assert view.cursor.stage is Stage.UPDATE
    for _ in range(20):
        pupil.press(Key.Key_Left)
    assert pupil.lesson_player.place == 0
    assert view.run.head == 1


def test_opening_another_run_ends_the_lesson_and_shows_that_run(pupil: Pupil) -> None:
    program = pupil.driver.program
    pupil.driver.run(2)
    own = program.workspace.run
    assert own is not None
    pupil.open("one_update")
    program.runs.new_bandit_run()
    pupil.driver.settle()
    assert pupil.lesson_player.lesson is None
    assert program.workspace.run not in (None, own)
    assert [run.title.startswith("Lesson") for run in program.workspace.runs] == [False, False]
    assert program.actions["run"].shortcuts()[0].toString() == "Space"


def test_closing_the_lessons_run_ends_the_lesson(pupil: Pupil) -> None:
    pupil.open("one_update")
    pupil.driver.program.runs.close_run()
    pupil.driver.settle()
    assert pupil.lesson_player.lesson is None
    assert pupil.driver.head == 0


def test_the_keys_are_the_lessons_while_it_is_given_also_before_a_class(pupil: Pupil) -> None:
    program = pupil.driver.program
    pupil.open("one_update")
    program.part("teaching").presenter.toggle()
    pupil.driver.qtbot.waitUntil(lambda: program.window.docks["lesson"].isVisible())
    pupil.press(Key.Key_PageDown)
    assert pupil.lesson_player.place == 1
    pupil.press(Key.Key_S)
    assert pupil.lesson_player.step.speaker in program.part("teaching").presenter.speaker.lesson.text()
    assert pupil.lesson_player.step.speaker != ""
    pupil.press(Key.Key_Space)
    assert pupil.lesson_player.place == 2
    pupil.press(Key.Key_S)
    program.actions["present.next"].trigger()  # the speaker's button
    pupil.wait()
    assert pupil.lesson_player.place == 3
    assert program.actions["present.blank"].shortcuts(), "the remote's dark button still works"
    pupil.press(Key.Key_Escape)
    assert not program.part("teaching").presenter.active and pupil.lesson_player.place == 3
    pupil.press(Key.Key_Escape)
    assert pupil.lesson_player.lesson is None, "presenting ends first, the lesson after that"
    pupil.driver.settle()


def test_closing_the_window_in_a_lesson_remembers_the_users_run(pupil: Pupil) -> None:
    program = pupil.driver.program
    pupil.driver.run(2)
    own = program.workspace.run
    assert own is not None
    pupil.open("one_update")
    program.window.close()
    pupil.driver.qtbot.waitUntil(lambda: program.window.may_close)
    assert program.preferences.current.last_run == str(own.path)
    assert list(program.paths.runs.glob("*.grpo")) == [own.path]


def test_broken_lessons_stand_in_the_list_and_cannot_be_opened(
    pupil: Pupil, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = next(Path("resources/lessons").glob("03*.toml")).read_text("utf-8")
    (tmp_path / "good.toml").write_text(text, "utf-8")
    (tmp_path / "bad.toml").write_text(text.replace("number = 3", "number = three"), "utf-8")
    monkeypatch.setattr("app.teaching.lessons.panel.lessons", lambda: lessons(tmp_path))
    pupil.driver.program.actions["lessons"].trigger()
    pupil.driver.settle()
    panel = pupil.driver.program.part("teaching").lessons.panel
    assert [panel.list.item(row).text() for row in range(panel.list.count())][2].startswith("!. bad.toml")
    assert "bad.toml, line 2: this is not TOML" in panel.list.item(2).text()
    panel.list.setCurrentRow(2)
    QTest.keyClick(panel.list, Key.Key_Return)
    assert pupil.lesson_player.lesson is None
    panel.list.setCurrentRow(1)
    QTest.keyClick(panel.list, Key.Key_Return)
    assert pupil.lesson_player.lesson is not None


def test_a_lesson_that_diverges_says_so_and_can_be_left(pupil: Pupil) -> None:
    wild = Settings().replace(
        {
            "optimizer.learning_rate": 1000.0,
            "task.landscape": "custom",
            "task.custom": (*[1e9] * 9, -1e9),
            "objective.std": "none",
            "learner.mu": 64,
            "objective.clip_high": 1e6,
        }
    )
    lesson = Lesson(id="wild", number=9, title="?", start=wild, steps=(LessonStep(text="a", update=500),))
    pupil.lesson_player.open(lesson)
    pupil.driver.qtbot.waitUntil(lambda: not pupil.lesson_player.busy)
    pupil.press(Key.Key_Escape)
    assert pupil.lesson_player.lesson is None
    assert pupil.driver.head == 0


def test_a_lesson_on_the_language_model_trains_it_without_torch(without_torch: Path, pupil: Pupil) -> None:
    own = pupil.driver.program.workspace.run
    small = language_settings().replace({"task.prompts": 2, "learner.group_size": 4})
    steps = (LessonStep(text="a"), LessonStep(text="b", update=2))
    pupil.lesson_player.open(Lesson(id="words", number=9, title="?", start=small, steps=steps))
    pupil.walk_to(2)
    run = pupil.driver.program.workspace.run
    assert run is not None and run is not own and pupil.lesson_player.problem == ""
    step = run.step(2)
    assert step is not None and engine_of(step) == NUMPY
    pupil.press(Key.Key_Escape)
    assert pupil.driver.program.workspace.run is own


def test_a_lesson_without_a_picture_leaves_the_keyboard_where_it_was_put(pupil: Pupil) -> None:
    pupil.driver.program.window.activateWindow()
    pupil.driver.qtbot.waitUntil(pupil.driver.program.window.isActiveWindow)
    pupil.lesson_player.open(dataclasses.replace(shipped("one_update"), interactive=""))
    pupil.wait()
    button = pupil.page.bar.leave
    button.setFocus(Qt.FocusReason.TabFocusReason)
    pupil.page.redraw.emit()
    pupil.driver.settle()
    assert QApplication.focusWidget() is button


@pytest.mark.parametrize("listed", [True, False])
def test_the_keyboard_goes_to_what_is_seen_when_a_lesson_is_left(pupil: Pupil, listed: bool) -> None:
    window = pupil.driver.program.window
    if listed:
        pupil.open("one_update")
    else:
        window.activateWindow()
        pupil.lesson_player.open(shipped("one_update"))
        pupil.wait()
    pupil.press(Key.Key_Escape)
    lessons, bars = pupil.driver.program.part("teaching").lessons.panel, window.panels["policy_bars"]
    focus = QApplication.focusWidget()
    assert focus is not None
    assert focus is lessons.list if listed else bars.isAncestorOf(focus)
    assert not listed or window.docks["lesson"].isVisible()


def test_a_lesson_whose_picture_is_not_the_run_offers_no_training(pupil: Pupil) -> None:
    """Run trained 17 hidden updates."""
    program = pupil.driver.program
    for id, shown in (("build_group", False), ("one_update", True), ("build_group", False)):
        pupil.open(id)
        pupil.driver.settle()
        assert program.transport.isVisible() == shown
        for command in ("run", "run_n", "step", "stage", "reset", "branch", "new_seed"):
            why = program.actions[command].why
            assert ("does not show a run" in why) != shown, command
        before = pupil.driver.head
        pupil.press(Qt.Key.Key_Period)
        assert pupil.driver.head == before or shown
        pupil.lesson_player.leave()
        pupil.driver.rest()
        assert program.transport.isVisible()
        assert not program.actions["run"].why
