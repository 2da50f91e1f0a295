"""The controller of breakpoints: passes them to the worker, stores them, and reports which one stopped a run."""

from __future__ import annotations

from PySide6.QtCore import QObject, Slot

from app.controllers.program import Program
from app.messages.message import BarAction, Severity
from app.panel_registry import BREAKPOINTS
from app.training.controller import State
from grpo_core.text import tr

MESSAGE = "breakpoint"


class BreakpointsController(QObject):
    """Connects the list of breakpoints, the worker, the preferences and the message bar."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self._window, self._breakpoints = program.window, program.workspace.breakpoints
        self._controller, self._preferences = program.controller, program.preferences
        self._controller.set_breakpoints(self._breakpoints.all)
        self._breakpoints.changed.connect(self._on_changed)
        self._controller.reached.connect(self._on_reached)
        self._controller.state_changed.connect(self._on_state)

    def show(self) -> None:
        """Bring the list to the front, with the keyboard focus in its form."""
        self._window.show_panel(BREAKPOINTS).focus_form()

    @Slot()
    def _on_changed(self) -> None:
        self._controller.set_breakpoints(self._breakpoints.all)
        self._preferences.change(breakpoints=self._breakpoints.all)

    @Slot(str)
    def _on_reached(self, sentence: str) -> None:
        """Show why the run has stopped. The message is removed when the run continues."""
        show = BarAction(text=tr("Breakpoints"), run=self.show)
        self._window.messages.say(sentence, Severity.INFO, show, id=MESSAGE)

    @Slot(object)
    def _on_state(self, state: State) -> None:
        if state in (State.RUNNING, State.PREPARING):
            self._window.messages.remove(MESSAGE)
