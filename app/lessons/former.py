"""What the user had before a lesson, and how it is given back."""

from __future__ import annotations

from dataclasses import dataclass

from app.workspace.cursor import Cursor, Selection
from app.workspace.run_handle import RunHandle
from app.workspace.run_manager import RunManager
from app.workspace.workspace import Workspace
from grpo_core.config import Settings
from grpo_core.explain import Quantity


@dataclass(frozen=True, kw_only=True)
class Former:
    """The user's place.

    Attributes:
        run: the run that was shown.
        wanted: what the controls said, with what waits for a new run.
        cursor, following, selection, quantity: where the eye was.
    """

    run: RunHandle
    wanted: Settings
    cursor: Cursor
    following: bool
    selection: Selection
    quantity: Quantity | None

    @classmethod
    def of(cls, workspace: Workspace) -> Former:
        """The place as it is now."""
        assert workspace.run is not None
        return cls(
            run=workspace.run, wanted=workspace.editing.wanted, cursor=workspace.cursor,
            following=workspace.following, selection=workspace.selection, quantity=workspace.quantity,
        )  # fmt: skip

    def give_back(self, workspace: Workspace, run_manager: RunManager) -> None:
        """Show it again, if the run has not been closed meanwhile; the learner stands still."""
        if self.run not in workspace.runs:
            return
        run_manager.show(self.run)
        workspace.editing.put(self.wanted)
        workspace.following, workspace.selection, workspace.quantity = self.following, self.selection, self.quantity
        workspace.cursor = self.cursor
        workspace.request_frame()
