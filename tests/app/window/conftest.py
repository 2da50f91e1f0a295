"""A window in a given size, look and layout, and the panels in it."""

from __future__ import annotations

from PySide6.QtWidgets import QApplication, QWidget

from tests.app.conftest import Driver


def rests(panel: QWidget) -> bool:
    """Return whether a panel computes nothing."""
    return not getattr(panel, "busy", False) and not getattr(getattr(panel, "repeats", None), "busy", False)


def arranged(driver: Driver, width: int, height: int, scale: float = 1.0, theme: str = "light") -> None:
    """Give the window this size and look, with its docks arranged by the layout."""
    program = driver.program
    program.look.set(theme, scale)
    program.window.resize(width, height)
    driver.settle()
    driver.qtbot.waitUntil(lambda: not program.zooming.busy)
    program.layouts.reset()
    driver.settle()
    QApplication.processEvents()
    driver.settle()
    driver.qtbot.waitUntil(lambda: not program.zooming.busy)
