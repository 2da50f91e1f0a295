"""How a class is begun, and what it sees."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app.widgets.panel import in_window
from app.workspace.cursor import Stage
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
