"""The user's state before a lesson, and the arrangement of the window during one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from app.workspace.cursor import Cursor, Selection
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
