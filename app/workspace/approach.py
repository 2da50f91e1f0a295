"""Background preparation of an update that is slow to read, before the cursor moves there.

Only the latest goal counts.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal, Slot

from app.jobs.runner import Runner
from app.workspace.cursor import Cursor
from app.workspace.run_handle import RunHandle


class Approach(Runner):
    """Delays the cursor's move to an update until that update can be shown immediately.

    Until then, the current update stays on screen.

    Attributes:
        waits: whether it does so; exporters of pictures wait for each update anyway.
        goal: the position to which the cursor will move; None if no move is pending.

    Signals:
        reached: emitted when the goal can be shown.
        changed: emitted when the goal changes or is dropped.
    """

    reached = Signal(object)
    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent, self._on_prepared, self._on_ended)
        self.waits = False
        self.run: RunHandle | None = None
        self.goal: Cursor | None = None
        self._reads: RunHandle | None = None

    def lead(self, run: RunHandle, cursor: Cursor) -> bool:
        """Start moving to ``cursor``, and return whether the cursor has to wait until ``reached`` is emitted."""
        work = run.preparation(cursor) if self.waits else None
        if work is None:
            self.drop()
            return False
        self.run, self.goal = run, cursor
        if not self.busy:
            self._begin(work)
        self.changed.emit()
        return True

    def drop(self) -> None:
        """Cancel the current goal. An update that is already being read is still stored when it is ready."""
        if self.goal is not None:
            self.goal = None
            self.changed.emit()

    def _begin(self, work: Callable[[], object]) -> None:
        self._reads = self.run
        self.start(lambda poll: iter([work()]))

    @Slot(object)
    def _on_prepared(self, prepared: object) -> None:
        if self._reads is not None:
            self._reads.adopt(prepared)

    @Slot(str)
    def _on_ended(self, why_not: str) -> None:
        run, goal = self.run, self.goal
        if run is None or goal is None:
            return
        work = None if why_not and run is self._reads else run.preparation(goal)
        if work is not None:  # the goal has changed in the meantime
            self._begin(work)
            return
        self.goal = None
        self.reached.emit(goal)  # if it could not be read, the panel that shows it reports why
        self.changed.emit()
