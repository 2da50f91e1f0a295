"""A lesson is a guest in the window: what it takes over when it comes, and gives back when it goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from app.lessons.former import Former
from app.lessons.runs import LessonRuns
from app.training.controller import Controller
from app.workspace.player import Player
from app.workspace.run_handle import RunHandle
from app.workspace.run_manager import RunManager
from app.workspace.workspace import Workspace


class LessonDocks(Protocol):
    """The window's docks, as far as a lesson arranges them."""

    def show(self, panels: Sequence[str], scale: float, *, picture: bool = True, again: bool = False) -> None:
        """Give the window to the lesson, with a ``picture`` of its own or without, and ``panels`` beside it."""

    def give_back(self) -> None:
        """Put every dock where it was before the lesson."""


class Visit:
    """The time between the first lesson's first step and the last one's end.

    Attributes:
        layout: where the lesson stands.
        runs: its own runs.
        former: the user's place; None between lessons.
    """

    def __init__(
        self,
        workspace: Workspace,
        run_manager: RunManager,
        controller: Controller,
        player: Player,
        layout: LessonDocks,
    ) -> None:
        self._workspace, self._run_manager, self._controller, self._player = workspace, run_manager, controller, player
        self.former: Former | None = None
        self.layout = layout
        self.runs = LessonRuns(workspace, run_manager, controller)
        controller.closed.connect(self.runs.sweep)

    def begin(self) -> None:
        """The user's place is noted, and whatever moves there stands still."""
        self.former = Former.of(self._workspace)
        self._player.pause()
        self._controller.set_breakpoints(())  # the user's are for the user's runs

    def give_back(self) -> None:
        """The user's run, cursor and settings, and everything else."""
        if self.former is not None:
            self.runs.switching = True
            self.former.give_back(self._workspace, self._run_manager)
        self.end()

    def end(self, keep: RunHandle | None = None) -> None:
        """The lesson's runs go, but for the one to ``keep``; breakpoints and docks are as before."""
        self.runs.clear(keep=keep)
        self.runs.switching = False
        self.former = None
        self._controller.set_breakpoints(self._workspace.breakpoints.all)
        self.layout.give_back()
