"""How a class is begun, and what it sees."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app.teaching.lessons.catalogue import lessons
from app.teaching.presenting.screens import SPACE, fitting_scale
from app.widgets.panel import in_window
from app.workspace.cursor import Stage
from grpo_core.teaching.lessons import Lesson
from tests.app.conftest import Driver


def places(driver: Driver) -> dict[str, Any]:
    """Return the position of every visible dock. A dock without a title bar and with opaque content has no visible
    region of its own.
    """
    docks = driver.program.window.docks
    return {id: (dock.geometry(), dock.titleBarWidget()) for id, dock in docks.items() if in_window(dock)}


def settle(driver: Driver) -> None:
    presenter = driver.program.part("teaching").presenter
    driver.qtbot.waitUntil(lambda: not presenter.settling)
    driver.settle()


def start(driver: Driver) -> None:
    driver.program.actions["present"].trigger()
    settle(driver)
    driver.program.window.activateWindow()
    driver.qtbot.waitUntil(driver.program.window.isActiveWindow)


def start_at(driver: Driver, size: tuple[int, int], room: tuple[int, int] = SPACE) -> None:
    """Begin a class in a window of this size, with type for it."""
    start(driver)
    window = driver.program.window
    window.setWindowState(Qt.WindowState.WindowNoState)
    window.resize(*size)
    driver.program.look.set("projector", fitting_scale(window.rect(), room))
    settle(driver)
    driver.program.part("teaching").presenter.arrange_later()
    settle(driver)


def open_lesson(driver: Driver, lesson: Lesson, place: int = 0) -> None:
    """Open a lesson at a step, counted from 0, whose answers appear at once, and wait for its run."""
    player = driver.program.part("teaching").lessons.player
    player.reveal.moves = False
    player.open(lesson, place)
    driver.qtbot.waitUntil(lambda: not player.busy)
    settle(driver)


def asking(kind: str) -> tuple[Lesson, int]:
    """Return a lesson and the step, counted from 0, that asks a question of this kind about a run of its own."""
    return next(
        (lesson, place)
        for lesson in lessons()[0]
        for place, step in enumerate(lesson.steps)
        if step.predict is not None and step.predict.kind == kind and not step.recorded and place > 0
    )


def stage_of(driver: Driver) -> Stage:
    return driver.program.workspace.cursor.stage


def press(driver: Driver, *keys: Qt.Key) -> None:
    """Press keys in the active window, and wait for their effects."""
    for key in keys:
        focus = QApplication.focusWidget()
        assert focus is not None
        QTest.keyClick(focus, key)
        driver.qtbot.waitUntil(lambda: not driver.program.part("teaching").lessons.player.busy)
        driver.settle()
