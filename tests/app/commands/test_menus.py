"""The menus contain every listed command whose subject they show, in the order of the table."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMainWindow, QMenu

from app.commands.actions import Actions, fill_menus
from grpo_core.parts import names
from tests.app.commands.conftest import Recorder

TOPS = ["File", "Edit", "Run", "Go", "View", *(["Lessons"] if "teaching" in names() else []), "Help"]


def entries(menu: QMenu) -> list[QAction]:
    """Return every action of a menu and its submenus."""
    found: list[QAction] = []
    for action in menu.actions():
        below = action.menu()
        found += entries(below) if isinstance(below, QMenu) else [action]
    return [action for action in found if not action.isSeparator()]


def tops(window: QMainWindow) -> list[QMenu]:
    return [menu for action in window.menuBar().actions() if isinstance(menu := action.menu(), QMenu)]


def test_every_command_is_in_a_menu_once(window: QMainWindow, actions: Actions) -> None:
    fill_menus(window.menuBar(), actions, lambda subject: True)
    assert [menu.title() for menu in tops(window)] == TOPS
    listed = [action for menu in tops(window) for action in entries(menu)]
    assert sorted(action.objectName() for action in listed) == sorted(one.id for one in actions.commands if one.listed)


def test_a_menu_holds_only_the_subjects_that_are_shown(window: QMainWindow, actions: Actions) -> None:
    fill_menus(window.menuBar(), actions, lambda subject: not subject)
    listed = {action.objectName() for menu in tops(window) for action in entries(menu)}
    assert listed == {one.id for one in actions.commands if one.listed and not one.subject}


def test_filling_again_replaces_the_menus(window: QMainWindow, actions: Actions) -> None:
    for _ in range(3):
        fill_menus(window.menuBar(), actions, lambda subject: True)
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    assert len(tops(window)) == len(TOPS)
    menus = {command.menu for command in actions.commands if command.listed}
    assert len(window.menuBar().findChildren(QMenu)) == len(menus)


def test_one_theme_at_a_time_is_on_and_a_click_leaves_it_on(window: Recorder, actions: Actions) -> None:
    fill_menus(window.menuBar(), actions, lambda subject: True)
    for name in ("dark", "light"):
        window.stand.on = {f"theme.{name}"}
        actions.refresh()
        on = [action.objectName() for action in actions if action.isChecked() and "theme" in action.objectName()]
        assert on == [f"theme.{name}"]
    actions["theme.light"].trigger()
    actions.refresh()
    assert actions["theme.light"].isChecked()
