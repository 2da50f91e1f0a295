"""Menus built from the table of commands."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtGui import QActionGroup
from PySide6.QtWidgets import QMenu, QMenuBar

from app.commands.actions import Actions
from app.commands.command import LANGUAGE, LAYOUT, THEME

EXCLUSIVE = (THEME, LANGUAGE, LAYOUT)
"""Menus with at most one checked entry."""


def fill_menus(bar: QMenuBar, actions: Actions, shows: Callable[[str], bool]) -> None:
    """Fill ``bar`` with the listed ``actions`` whose subjects ``shows`` accepts, replacing its content."""
    for old in bar.findChildren(QMenu):
        old.deleteLater()
    bar.clear()
    menus: dict[str, QMenu] = {}
    groups = {path: QActionGroup(actions) for path in EXCLUSIVE}
    for group in groups.values():
        # a click on the checked entry must not uncheck it, and none need be checked
        group.setExclusionPolicy(QActionGroup.ExclusionPolicy.ExclusiveOptional)
    for action in (one for one in actions if one.command.listed and shows(one.command.subject)):
        path = action.command.menu
        menu = _menu(bar, menus, path)
        if action.command.divided and not menu.isEmpty():
            menu.addSeparator()
        menu.addAction(action)
        if path in groups and action.isCheckable():
            groups[path].addAction(action)


def _menu(bar: QMenuBar, menus: dict[str, QMenu], path: str) -> QMenu:
    """Return the menu at ``path``, created with its parents if needed."""
    if path not in menus:
        above, _, title = path.rpartition("/")
        menu = QMenu(title, bar)
        menu.setObjectName(f"menu {path}")
        menu.setToolTipsVisible(True)
        (_menu(bar, menus, above) if above else bar).addMenu(menu)
        menus[path] = menu
    return menus[path]
