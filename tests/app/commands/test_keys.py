"""Keys reach the command, unless the focused widget needs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QComboBox,
    QDialog,
    QDockWidget,
    QDoubleSpinBox,
    QLineEdit,
    QListWidget,
    QPlainTextEdit,
    QPushButton,
    QScrollArea,
    QSlider,
    QTabBar,
    QTableWidget,
    QToolButton,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.commands.actions import Actions

Key, Modifier = Qt.Key, Qt.KeyboardModifier
KEYS = {
    "run": (Key.Key_Space, Modifier.NoModifier),
    "step": (Key.Key_Period, Modifier.NoModifier),
    "stage": (Key.Key_Period, Modifier.ShiftModifier),
    "explain": (Key.Key_E, Modifier.NoModifier),
    "go_start": (Key.Key_Home, Modifier.NoModifier),
    "palette": (Key.Key_P, Modifier.ControlModifier | Modifier.ShiftModifier),
}
EVERYTHING = set(KEYS)
ANYWHERE = {"palette"}


def focusable() -> QWidget:
    widget = QWidget()
    widget.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    return widget


def combo() -> QComboBox:
    widget = QComboBox()
    widget.addItems(["alpha", "beta", "epsilon"])
    return widget


def editable_combo() -> QComboBox:
    widget = combo()
    widget.setEditable(True)
    return widget


def table() -> QTableWidget:
    widget = QTableWidget(3, 3)
    widget.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
    return widget


def listing() -> QListWidget:
    widget = QListWidget()
    widget.addItems(["alpha", "epsilon"])
    return widget


def read_only_text() -> QPlainTextEdit:
    widget = QPlainTextEdit("text")
    widget.setReadOnly(True)
    return widget


def tabs() -> QTabBar:
    widget = QTabBar()
    widget.addTab("one")
    widget.addTab("two")
    return widget


CASES: list[tuple[Callable[[], QWidget], set[str]]] = [
    (focusable, EVERYTHING),
    (QLineEdit, ANYWHERE),
    (QDoubleSpinBox, ANYWHERE),
    (QPlainTextEdit, ANYWHERE),
    (read_only_text, EVERYTHING - {"go_start"}),
    (combo, ANYWHERE),
    (editable_combo, ANYWHERE),
    (listing, ANYWHERE),
    (table, {"step", "stage", "explain", "palette"}),
    (QPushButton, EVERYTHING - {"run"}),
    (QToolButton, EVERYTHING - {"run"}),
    (QCheckBox, EVERYTHING - {"run"}),
    (QSlider, EVERYTHING - {"go_start"}),
    (tabs, EVERYTHING - {"go_start"}),
    (QScrollArea, EVERYTHING),
]


@pytest.mark.parametrize(("make", "reaching"), CASES, ids=[make.__name__ for make, _ in CASES])
def test_the_focused_widget_keeps_the_keys_it_needs(
    window: Any, actions: Actions, make: Callable[[], QWidget], reaching: set[str]
) -> None:
    widget = window.hold(make())
    widget.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    widget.setFocus(Qt.FocusReason.TabFocusReason)
    assert widget.hasFocus()
    for id, (key, modifiers) in KEYS.items():
        QTest.keyClick(widget, key, modifiers)
        popup = widget.view().window() if isinstance(widget, QComboBox) else None
        if popup is not None:
            widget.hidePopup()
        assert window.names() == ([id] if id in reaching else []), id
    QTest.keyClick(widget, Key.Key_Space, Modifier.ControlModifier)
    assert window.names() == ["run"], "a key that works everywhere"


def test_the_kept_key_does_its_work_in_the_widget(window: Any, actions: Actions) -> None:
    button, box, edit = window.hold(QPushButton("Go")), window.hold(QCheckBox("On")), window.hold(QLineEdit())
    pressed: list[bool] = []
    button.clicked.connect(lambda on: pressed.append(on))
    button.setFocus()
    QTest.keyClick(button, Key.Key_Space)
    box.setFocus()
    QTest.keyClick(box, Key.Key_Space)
    edit.setFocus()
    QTest.keyClicks(edit, "e. t")
    assert (len(pressed), box.isChecked(), edit.text()) == (1, True, "e. t")
    assert window.names() == []


def test_the_keys_follow_the_focus_from_widget_to_widget(window: Any, actions: Actions) -> None:
    edit, plain = window.hold(QLineEdit()), window.hold(focusable())
    for _ in range(2):
        edit.setFocus()
        QTest.keyClick(edit, Key.Key_E)
        assert window.names() == []
        plain.setFocus()
        QTest.keyClick(plain, Key.Key_E)
        assert window.names() == ["explain"]


def test_a_key_of_a_command_that_cannot_run_reaches_nothing(window: Any, actions: Actions) -> None:
    plain = window.hold(focusable())
    plain.setFocus()
    actions["explain"].setEnabled(False)
    QTest.keyClick(plain, Key.Key_E)
    assert window.names() == []


def test_without_any_focus_the_keys_work(window: Any, actions: Actions) -> None:
    QTest.keyClick(window, Key.Key_Space)
    QTest.keyClick(window, Key.Key_Comma)
    QTest.keyClick(window, Key.Key_Comma, Modifier.ShiftModifier)
    QTest.keyClick(window, Key.Key_End)
    assert window.names() == ["run", "step_back", "stage_back", "go_end"]


def test_undo_in_a_text_field_undoes_the_text(window: Any, actions: Actions) -> None:
    edit = window.hold(QLineEdit())
    edit.setFocus()
    QTest.keyClicks(edit, "12")
    QTest.keyClick(edit, Key.Key_Z, Modifier.ControlModifier)
    assert edit.text() == ""
    assert window.names() == []


def test_keys_work_in_a_floating_panel(qtbot: QtBot, window: Any, actions: Actions) -> None:
    dock = QDockWidget("Explain", window)
    content = focusable()
    dock.setWidget(content)
    window.addDockWidget(Qt.DockWidgetArea.RightDockWidgetArea, dock)
    dock.setFloating(True)
    dock.show()
    dock.activateWindow()
    qtbot.waitUntil(lambda: QApplication.activeWindow() is dock)
    content.setFocus()
    QTest.keyClick(content, Key.Key_Space)
    assert window.names() == ["run"]


def test_keys_stay_in_a_dialog(qtbot: QtBot, window: Any, actions: Actions) -> None:
    dialog = QDialog(window)
    inside = focusable()
    inside.setParent(dialog)
    inside.show()
    dialog.show()
    dialog.activateWindow()
    qtbot.waitUntil(lambda: QApplication.activeWindow() is dialog)
    inside.setFocus()
    QTest.keyClick(inside, Key.Key_Space)
    assert window.names() == []


@pytest.mark.needs_part("teaching")
def test_keys_of_a_context_act_only_in_it(window: Any, actions: Actions) -> None:
    plain = window.hold(focusable())
    plain.setFocus()
    QTest.keyClick(plain, Key.Key_PageDown)
    assert window.names() == []
    actions.set_context("present")
    QTest.keyClick(plain, Key.Key_PageDown)
    QTest.keyClick(plain, Key.Key_PageUp)
    QTest.keyClick(plain, Key.Key_Period)
    assert window.names() == ["present.next", "present.back", "present.blank"]
    actions.set_context("app")
    QTest.keyClick(plain, Key.Key_PageDown)
    assert window.names() == []


def test_running_a_command_is_announced_by_its_id(qtbot: QtBot, actions: Actions) -> None:
    with qtbot.waitSignal(actions.ran) as told:
        actions["step"].trigger()
    assert told.args == ["step"]
