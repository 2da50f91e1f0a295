"""The program's commands in a bare window, which records that they were run."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication, QMainWindow, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.commands.actions import Actions
from app.commands.command import Command
from app.self_test.driving import Driven


@dataclass
class Stand:
    """State of the commands, in place of the program's own state.

    Attributes:
        blocked: why commands cannot run, by id.
        on: ids of the commands that are switched on.
        texts: the current names of commands, by id.
    """

    blocked: dict[str, str] = field(default_factory=dict)
    on: set[str] = field(default_factory=set)
    texts: dict[str, str] = field(default_factory=dict)


class Recorder(QMainWindow):
    """A real window without the program behind it.

    Attributes:
        called: ids of the commands that were run, in order.
        stand: the state of the commands.
    """

    def __init__(self) -> None:
        super().__init__()
        self.called: list[str] = []
        self.stand = Stand()
        centre = QWidget()
        self.setCentralWidget(centre)
        self._column = QVBoxLayout(centre)

    def hold(self, widget: QWidget) -> QWidget:
        """Put ``widget`` into the window."""
        self._column.addWidget(widget)
        widget.show()
        return widget

    def names(self) -> list[str]:
        """Return the commands that were run since the last call."""
        names, self.called = self.called, []
        return names

    def commands(self, declared: tuple[Command, ...]) -> list[Command]:
        """Return the commands as declared, but run and queried here."""
        return [self._recorded(command) for command in declared]

    def _recorded(self, command: Command) -> Command:
        id, stand = command.id, self.stand
        return replace(
            command,
            run=lambda: self.called.append(id),
            blocked=lambda: stand.blocked.get(id, ""),
            checked=None if command.checked is None else lambda: id in stand.on,
            face=lambda: (stand.texts.get(id, command.text), command.icon),
        )


@pytest.fixture(scope="session")
def declared(qapp: QApplication, tmp_path_factory: pytest.TempPathFactory) -> tuple[Command, ...]:
    """Every command of the program for a user with a layout and two recent files."""
    driven = Driven(qapp, tmp_path_factory.mktemp("home"))
    program = driven.program
    program.layout_files.save(program.window, "Mine")
    for name in ("run.grpo", "lecture.grposession"):
        program.preferences.remember(Path("/home/a") / name)
    commands = program.actions.commands
    driven.close(20.0)
    program.window.deleteLater()
    program.deleteLater()
    return commands


@pytest.fixture
def window(qtbot: QtBot) -> Recorder:
    made = Recorder()
    qtbot.addWidget(made)
    made.resize(900, 600)
    with qtbot.waitActive(made):
        made.show()
        made.activateWindow()
    return made


@pytest.fixture
def actions(window: Recorder, declared: tuple[Command, ...]) -> Actions:
    made = Actions(window, window.commands(declared))
    made.refresh()
    return made
