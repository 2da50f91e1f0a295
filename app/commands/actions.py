"""A ``QAction`` for every command, kept in sync with the command's state, and the menus of these actions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtGui import QAction, QActionGroup, QIcon
from PySide6.QtWidgets import QMainWindow, QMenu, QMenuBar

from app.commands.command import LANGUAGE, LAYOUT, THEME, Command, Context, conflicts
from app.commands.focus import FocusKeys
from app.theme.labels import plain_tip


class CommandAction(QAction):
    """The action of one command, used in menus, on toolbars and for its shortcuts.

    Attributes:
        why: the reason why the command cannot run now; empty if it can.

    Signals:
        begins: emitted before the command is run.
    """

    begins = Signal()

    def __init__(self, command: Command, icon: Callable[[str], QIcon] | None, parent: QObject) -> None:
        """Create the action. ``icon`` is a function that creates an icon from its name."""
        super().__init__(command.text, parent)
        self.why = self._icon_name = ""
        self._icon = icon
        self._shown: tuple[object, ...] | None = None
        """The state of the command that is shown; None if it has to be shown anew."""
        self.setShortcutContext(Qt.ShortcutContext.WindowShortcut)
        self.triggered.connect(self._on_triggered)
        self.stand_for(command)

    def stand_for(self, command: Command) -> None:
        """Assign another command to this action. Toolbars and menus that contain the action keep it."""
        self.command = command
        self.setObjectName(command.id)
        self.setShortcuts(command.keys)
        self.setAutoRepeat(command.repeats)
        self.setCheckable(command.checked is not None)
        self.setMenuRole(QAction.MenuRole.QuitRole if command.id == "quit" else QAction.MenuRole.NoRole)
        self.setStatusTip(command.tip)
        self._shown = None
        self.refresh()

    def refresh(self) -> None:
        """Update the text, the enabled state and the check mark from the command.

        This is cheap if nothing has changed.
        """
        command = self.command
        text, icon = (command.text, command.icon) if command.face is None else command.face()
        why, checked = command.blocked(), command.checked is not None and command.checked()
        if (text, icon, why, checked) == self._shown:
            return
        self._shown = text, icon, why, checked
        if icon != self._icon_name:
            self._icon_name = icon
            self.refresh_icon()
        self.why = why
        self.setEnabled(not why)
        self.setChecked(checked)
        self.setText(text)
        keys = f" ({command.shown_keys})" if command.shortcuts else ""
        self.setToolTip(plain_tip(f"{text}{keys}. {why or command.tip}".strip()))

    def refresh_icon(self) -> None:
        if self._icon is not None and self._icon_name:
            self.setIcon(self._icon(self._icon_name))

    @Slot()
    def _on_triggered(self) -> None:
        self._shown = None  # Qt itself has toggled a checkable action that was clicked
        self.begins.emit()
        if not self.command.blocked():  # what is shown may be a quarter of a second old
            self.command.run()


class Actions(QObject):
    """All actions of a window.

    Attributes:
        by_id: the actions by the ids of their commands, in the order of the table.

    Signals:
        rebuilt: emitted when the commands have been replaced, so that menus have to be filled again.
        begins: emitted before a command is run.
        ran: emitted with the ID of a command that was run; the state of other commands may have changed.
    """

    rebuilt = Signal()
    begins = Signal()
    ran = Signal(str)

    def __init__(
        self, window: QMainWindow, commands: Sequence[Command] = (), icon: Callable[[str], QIcon] | None = None
    ) -> None:
        """Create the actions. ``icon`` is a function that creates an icon from its name.

        Raises:
            ValueError: two commands share an ID or a shortcut.
        """
        super().__init__(window)
        self._window = window
        self._icon = icon
        self._context: Context = "app"
        self._lesson = False
        self.by_id: dict[str, CommandAction] = {}
        self._changing: list[CommandAction] = []
        self._focus = FocusKeys(self)
        self.set_commands(commands)

    def __getitem__(self, id: str) -> CommandAction:
        return self.by_id[id]

    def __iter__(self) -> Iterator[CommandAction]:
        return iter(self.by_id.values())

    @property
    def commands(self) -> tuple[Command, ...]:
        return tuple(action.command for action in self)

    def set_commands(self, commands: Sequence[Command]) -> None:
        """Replace the commands, for example after a layout was saved. Commands that remain keep their action.

        Raises:
            ValueError: two commands share an ID or a shortcut.
        """
        wrong = conflicts(commands)
        if wrong:
            raise ValueError(" ".join(wrong))
        before, self.by_id = self.by_id, {}
        for command in commands:
            kept = before.pop(command.id, None)
            if kept is not None:
                kept.stand_for(command)
            self.by_id[command.id] = kept or self._new(command)
        for old in before.values():
            old.setShortcuts([])  # so that the keys are free at once
            self._window.removeAction(old)
            old.deleteLater()
        self._changing = [action for action in self if action.command.changes]
        self.refresh_icons()
        self.set_context(self._context)
        self.rebuilt.emit()

    def _new(self, command: Command) -> CommandAction:
        action = CommandAction(command, self._icon, self)
        self._window.addAction(action)
        action.begins.connect(self.begins)
        action.triggered.connect(self._on_triggered)
        return action

    def refresh_icons(self) -> None:
        for action in self:
            action.refresh_icon()

    def refresh(self) -> None:
        """Update every action from its command. Called once per frame; only changes are applied."""
        for action in self._changing:
            action.refresh()

    def set_context(self, context: Context) -> None:
        """Activate the shortcuts of ``context``, which take precedence over those of the entire program."""
        self._context = context
        self._share_keys()

    def set_lesson(self, on: bool) -> None:
        """Set whether a lesson is open. Its shortcuts take precedence over all others, even while presenting."""
        if on != self._lesson:
            self._lesson = on
            self._share_keys()

    def _share_keys(self) -> None:
        """Assign every key to the first context that uses it."""
        self._focus.presenting = self._context == "present" or self._lesson
        contexts = list(dict.fromkeys((*(("lesson",) if self._lesson else ()), self._context, "app")))
        claimed: set[str] = set()
        for context in contexts:
            own = [action for action in self if action.command.context == context]
            for action in own:
                keys = [key for key in action.command.keys if key.toString() not in claimed]
                if keys != action.shortcuts():
                    action.setShortcuts(keys)
            claimed |= {key.toString() for action in own for key in action.command.keys}
        for action in self:
            if action.command.context not in contexts and action.shortcuts():
                action.setShortcuts([])

    @Slot()
    def _on_triggered(self) -> None:
        action = self.sender()
        if isinstance(action, CommandAction):
            self.ran.emit(action.command.id)


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
