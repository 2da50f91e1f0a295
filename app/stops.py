"""What the window does about breakpoints: hand them to the worker, keep them, say where a run has stopped."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Slot

from app.messages.message_bar import BarAction, Message, MessageBar, Severity
from app.training.controller import Controller, State
from app.workspace.workspace import Workspace
from grpo_core.breakpoints import Breakpoint
from grpo_core.text import tr

MESSAGE = "breakpoint"


class Stops(QObject):
    """Between the list of breakpoints, the worker, the preferences and the message bar.

    Args:
        keep: writes the list to the preferences.
        show: brings the list to the front.
    """

    def __init__(
        self,
        workspace: Workspace,
        controller: Controller,
        messages: MessageBar,
        keep: Callable[[tuple[Breakpoint, ...]], None],
        show: Callable[[], None],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._workspace, self._controller, self._messages = workspace, controller, messages
        self._keep, self._show = keep, show
        controller.set_breakpoints(workspace.breakpoints.all)
        workspace.breakpoints.changed.connect(self._on_changed)
        controller.reached.connect(self._on_reached)
        controller.state_changed.connect(self._on_state)

    @Slot()
    def _on_changed(self) -> None:
        self._controller.set_breakpoints(self._workspace.breakpoints.all)
        self._keep(self._workspace.breakpoints.all)

    @Slot(str)
    def _on_reached(self, sentence: str) -> None:
        """Say why the run stands still; the line goes away when it goes on."""
        shown = BarAction(text=tr("Breakpoints"), run=self._show)
        self._messages.post(Message(text=sentence, severity=Severity.INFO, actions=(shown,), id=MESSAGE))

    @Slot(object)
    def _on_state(self, state: State) -> None:
        if state in (State.RUNNING, State.PREPARING):
            self._messages.remove(MESSAGE)
