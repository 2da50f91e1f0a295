"""The user's state before a lesson, and its restoration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from app.teaching.lessons.runs import LessonRuns
from app.training.controller import Controller
from app.workspace.cursor import Cursor, Selection
from app.workspace.player import Player
from app.workspace.run_handle import RunHandle
from app.workspace.run_manager import RunManager
from app.workspace.workspace import Workspace
from grpo_core.config import Settings
from grpo_core.explain import Quantity


@dataclass(frozen=True, kw_only=True)
class SavedState:
    """State of the window before a lesson was opened.

    Attributes:
        run: the run that was shown.
        wanted: the settings in the controls, including changes that need a new run.
        cursor, following, selection, quantity: the state of the workspace.
    """

    run: RunHandle
    wanted: Settings
    cursor: Cursor
    following: bool
    selection: Selection
    quantity: Quantity | None

    @classmethod
    def of(cls, workspace: Workspace) -> SavedState:
        """Return the current state of ``workspace``."""
        assert workspace.run is not None
        return cls(
            run=workspace.run,
            wanted=workspace.editing.wanted,
            cursor=workspace.cursor,
            following=workspace.following,
            selection=workspace.selection,
            quantity=workspace.quantity,
        )

    def restore(self, workspace: Workspace, run_manager: RunManager) -> None:
        """Restore the state unless the run has been closed in the meantime.

        Call this only while nothing is training.
        """
        if self.run not in workspace.runs:
            return
        run_manager.show(self.run)
        workspace.editing.put(self.wanted)
        workspace.following, workspace.selection, workspace.quantity = self.following, self.selection, self.quantity
        workspace.cursor = self.cursor
        workspace.request_frame()


class LessonDocks(Protocol):
    """Arrangement of the window's docks for a lesson."""

    def show(
        self, panels: Sequence[str], scale: float, *, picture: bool = True, run: bool = True, again: bool = False
    ) -> None:
        """Arrange the window for the lesson, with or without its own ``picture``, and with ``panels`` next to it.

        ``scale`` is the user's scale. ``run`` is whether the lesson shows its run. ``again`` rearranges the panels even
        if they are already shown.
        """

    def give_back(self) -> None:
        """Return every dock to its position before the lesson."""


class LessonGuest:
    """Saves the user's run, cursor, settings, breakpoints and layout during a lesson, and restores them afterwards.

    Attributes:
        layout: the arrangement of the lesson.
        runs: the lesson's own runs.
        saved: the user's state; None between lessons.
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
        self.saved: SavedState | None = None
        self.layout = layout
        self.runs = LessonRuns(workspace, run_manager, controller)
        controller.closed.connect(self.runs.sweep)

    def arrive(self) -> None:
        """Save the user's state, pause playback, and clear the user's breakpoints."""
        self.saved = SavedState.of(self._workspace)
        self._player.pause()
        self._controller.set_breakpoints(())  # the user's breakpoints apply only to the user's runs

    def give_back(self) -> None:
        """Restore the user's run, cursor and settings, and everything else."""
        if self.saved is not None:
            self.runs.switching = True
            self.saved.restore(self._workspace, self._run_manager)
        self.go()

    def go(self, keep: RunHandle | None = None) -> None:
        """Remove the lesson's runs except ``keep``, and restore breakpoints and docks."""
        self.runs.clear(keep=keep)
        self.runs.switching = False
        self.saved = None
        self._controller.set_breakpoints(self._workspace.breakpoints.all)
        self.layout.give_back()
