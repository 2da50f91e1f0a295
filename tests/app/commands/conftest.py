"""A window that writes down what its commands call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from PySide6.QtWidgets import QMainWindow, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.commands.actions import Actions
from app.commands.command import State
from app.commands.table import commands

READY = State(
    head=5, step=3, next_event=True, previous_event=True, can_undo=True, can_redo=True, explainable=True, has_plot=True,
    presenting=True, lesson=True,
)  # fmt: skip
"""A state in which every command can run."""


class Recorder(QMainWindow):
    """A real window; each method of the protocol notes its name and arguments.

    Attributes:
        called: (method, arguments), in order.
    """

    def __init__(self) -> None:
        super().__init__()
        self.called: list[tuple[str, tuple[object, ...]]] = []
        centre = QWidget()
        self.setCentralWidget(centre)
        self._column = QVBoxLayout(centre)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *arguments: self.called.append((name, arguments))

    def state(self) -> State:
        return READY

    def panels(self) -> Sequence[tuple[str, str]]:
        return (("controls", "Controls"), ("explain", "Explain"))

    def recent_files(self) -> Sequence[str]:
        return ("/home/a/lecture.grposession", "/home/a/run.grpo")

    def saved_layouts(self) -> Sequence[str]:
        return ("Bandit", "Mine")

    def hold(self, widget: QWidget) -> QWidget:
        """Put ``widget`` into the window."""
        self._column.addWidget(widget)
        widget.show()
        return widget

    def names(self) -> list[str]:
        """What was called since the last question."""
        names, self.called = [name for name, _ in self.called], []
        return names


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
def actions(window: Recorder) -> Actions:
    made = Actions(window, commands(window))
    made.refresh(READY)
    return made
