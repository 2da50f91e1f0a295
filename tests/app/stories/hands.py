"""User actions: keys, clicks, drags, and finding things."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit, QWidget

from app.panels.controls.rows import Row
from app.widgets.panel import Panel
from tests.app.conftest import Driver


def panel(driver: Driver, name: str) -> Any:
    """Return a panel after bringing it to the front."""
    dock = driver.program.window.docks.get(name)
    if dock is not None:
        dock.show()
        dock.raise_()
        driver.settle()
    return driver.program.window.panels[name]


def activate(driver: Driver) -> None:
    """Make the window the active one, with the focus on the bars."""
    driver.program.window.activateWindow()
    driver.qtbot.waitUntil(driver.program.window.isActiveWindow)
    panel(driver, "policy_bars").focus_picture()
    driver.settle()


def press(driver: Driver, key: Qt.Key, modifiers: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
    """Press a key in the focused widget."""
    QTest.keyClick(QApplication.focusWidget() or driver.program.window, key, modifiers)


def type_into(field: QLineEdit, text: str) -> None:
    """Replace the text of a field and press Return."""
    field.setFocus()
    field.selectAll()
    QTest.keyClicks(field, text) if text else QTest.keyClick(field, Qt.Key.Key_Backspace)
    QTest.keyClick(field, Qt.Key.Key_Return)


def row_of(driver: Driver, path: str) -> Any:
    """Return the row of the controls that changes a setting."""
    rows: list[Row] = panel(driver, "controls").rows
    return next(row for row in rows if path in row.paths)


def drag(widget: QWidget, start: QPoint, *path: QPoint) -> None:
    """Press at ``start``, move along ``path``, and release."""
    QTest.mousePress(widget, Qt.MouseButton.LeftButton, pos=start)
    for point in path:
        QTest.mouseMove(widget, point)
    QTest.mouseRelease(widget, Qt.MouseButton.LeftButton, pos=path[-1])


def panel_of(widget: QWidget | None) -> str | None:
    """Return the id of the panel that contains a widget."""
    while widget is not None and not isinstance(widget, Panel):
        widget = widget.parentWidget()
    return None if widget is None else widget.id


def turn_wheel(window: QWidget, over: QWidget) -> None:
    """Turn the wheel one notch towards the user with the pointer over a widget."""
    QTest.wheelEvent(window.windowHandle(), QPointF(over.mapTo(window, over.rect().center())), QPoint(0, -120))
    QApplication.processEvents()
