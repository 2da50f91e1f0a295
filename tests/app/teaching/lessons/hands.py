"""A pupil at the keyboard, who opens a lesson, predicts and continues."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app.teaching.lessons.inputs import Options, Value
from app.teaching.lessons.interactives.base import Interactive
from app.teaching.lessons.page import LessonPage
from app.teaching.lessons.player import LessonPlayer
from app.teaching.lessons.prediction import Placed
from tests.app.conftest import Driver
from tests.app.teaching.lessons.spoilers import check_covered, check_untold, texts_of

P = TypeVar("P", bound=Interactive)


@dataclass
class Pupil:
    """What a pupil does and sees. ``patience`` is the time limit in milliseconds for the effects of a key."""

    driver: Driver
    patience: int = 45_000

    @property
    def lesson_player(self) -> LessonPlayer:
        return self.driver.program.part("teaching").lessons.player

    @property
    def page(self) -> LessonPage:
        page = self.driver.program.part("teaching").lessons.panel.page
        assert page is not None
        return page

    @property
    def picture(self) -> Interactive:
        assert self.page.interactive is not None
        return self.page.interactive

    def shown(self, kind: type[P]) -> P:
        """Return the picture, which is of this kind."""
        assert isinstance(self.picture, kind)
        return self.picture

    def press(self, key: Qt.Key) -> None:
        """Press a key in the focused widget, and wait for its effects."""
        QTest.keyClick(QApplication.focusWidget() or self.driver.program.window, key)
        self.driver.program.workspace.request_frame()
        self.wait()

    def wait(self) -> None:
        """Wait until the lesson's run and picture have been loaded and drawn."""
        self.driver.qtbot.waitUntil(self._still, timeout=self.patience)
        self.driver.settle()

    def _still(self) -> bool:
        return self.page.at_rest

    def open(self, id: str) -> None:
        """Open a lesson from the list with Return."""
        self.driver.program.window.activateWindow()
        self.driver.qtbot.waitUntil(self.driver.program.window.isActiveWindow)
        self.driver.program.actions["lessons"].trigger()
        self.driver.settle()
        lessons = self.driver.program.part("teaching").lessons.panel
        rows = [lessons.list.item(row) for row in range(lessons.list.count())]
        reached = [row.data(Qt.ItemDataRole.UserRole).lesson for row in rows if row.flags() & Qt.ItemFlag.ItemIsEnabled]
        place = reached.index(id)
        QTest.keyClick(lessons.list, Qt.Key.Key_Home)
        for _ in range(place):
            QTest.keyClick(lessons.list, Qt.Key.Key_Down)
        QTest.keyClick(lessons.list, Qt.Key.Key_Return)
        self.wait()
        assert self.lesson_player.lesson is not None
        assert self.lesson_player.lesson.id == id, self.lesson_player.lesson.id

    def opened(self, id: str, kind: type[P], step: int = 1) -> P:
        """Open a lesson, go to a step, counted from 1, past its question, and return the picture, of this kind."""
        self.open(id)
        self.walk_to(step)
        if self.lesson_player.covered:
            self.press(Qt.Key.Key_S)
        return self.shown(kind)

    def next(self) -> None:
        self.press(Qt.Key.Key_Right)

    def predict(self, guess: float) -> Placed:
        """Place a prediction by keyboard: a number, or the index of a choice (for up, same, down: 0, 1, 2).

        Asserts that nothing in the window has given away the answer.
        """
        player, program = self.lesson_player, self.driver.program
        check_covered(player, self.page, program.workspace.view)
        texts = texts_of(program.window)
        box = self.page.prediction.input
        assert box is not None
        assert box.hasFocus(), "the question has the keyboard"
        if isinstance(box, Options):
            QTest.keyClick(box, Qt.Key(Qt.Key.Key_1 + round(guess)))
        else:
            assert isinstance(box, Value)
            QTest.keyClicks(box, f"{100 * guess if box.form == 'percent' else guess:.6g}")
        self.press(Qt.Key.Key_Return)
        assert player.lesson is not None
        predict, placed = player.lesson.steps[player.place].predict, player.placed[player.place]
        assert predict is not None
        if placed.value is not None:
            check_untold(predict, placed.value, texts)
        return placed

    def turn(self, knob: str, value: object) -> None:
        """Turn a knob of the lesson, and wait for its run."""
        row, editing = self.page.knobs.rows[knob], self.driver.program.workspace.editing
        row.edited.emit(row.paths, value, None)
        self.driver.qtbot.waitUntil(lambda: editing.settings.get(knob) == value)
        self.wait()

    def walk_to(self, step: int) -> None:
        """Go to a step, counted from 1, past every question before it. A question at the step itself stays open."""
        while self.lesson_player.place + 1 < step:
            if self.lesson_player.covered:
                self.press(Qt.Key.Key_S)
            self.next()
        assert self.lesson_player.place + 1 == step

    def to_end(self) -> None:
        """Go on to the end of the lesson, skipping every question."""
        while not self.lesson_player.finished:
            self.lesson_player.skip() if self.lesson_player.covered else self.lesson_player.next()
            self.wait()

    def through(self, guesses: Mapping[int, float]) -> list[Placed]:
        """Go from the first step to the last, answering every question, by ``guesses`` where these have its step,
        counted from 1. Returns the outcomes of the predictions.
        """
        lesson = self.lesson_player.lesson
        assert lesson is not None
        for place, step in enumerate(lesson.steps):
            assert self.lesson_player.place == place
            if step.predict is not None:
                assert self.lesson_player.covered
                middle = (step.predict.low + step.predict.high) / 2
                any_guess = 0 if step.predict.kind in ("choice", "direction") else middle
                self.predict(guesses.get(place + 1, any_guess))
            assert not self.lesson_player.covered
            assert self.lesson_player.problem == ""
            assert self.page.bar.note.text() == ""
            if place + 1 < len(lesson.steps):
                self.next()
        return [self.lesson_player.placed[place] for place in sorted(self.lesson_player.placed)]
