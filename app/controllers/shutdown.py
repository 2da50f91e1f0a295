"""The shutdown of a window: the worker first, then the files, then the widgets."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QApplication

from app.controllers.program import Program
from app.messages.message import BarAction, Message, Severity
from grpo_core.text import tr


class ShutdownController(QObject):
    """Shuts the program down in the right order. It waits for an update that is being finished, and says so.

    Args:
        closers: functions called in this order once the worker has ended; they close files, processes and windows.
    """

    def __init__(self, program: Program, closers: Sequence[Callable[[], object]]) -> None:
        super().__init__(program)
        self._window, self._workspace, self._controller = program.window, program.workspace, program.controller
        self._player, self._parts, self._preferences = program.player, program.parts, program.preferences
        self._layouts = program.layout_files
        self.closers = closers
        self._controller.finished.connect(self._on_finished)
        self._controller.still_busy.connect(self._on_still_busy)

    @Slot()
    def close(self) -> None:
        """Stop the worker, then close the window."""
        for part in self._parts:
            part.leave()
        self._window.leave_alone()
        self._player.rest()
        if self._controller.shutdown(timeout=0.2):
            self._on_finished()
        else:
            text = tr("Finishing update {head}, then the window closes.").format(head=self._controller.head + 1)
            self._window.messages.say(text, Severity.INFO)

    @Slot()
    def _on_finished(self) -> None:
        window = self._window
        if window.may_close:
            return
        with ExitStack() as ending:  # in reverse order; if one fails, the others still run
            ending.callback(QApplication.quit)
            ending.callback(self._close_window)
            ending.callback(self._workspace.close)
            for panel in window.panels.values():
                ending.callback(panel.dispose)
            ending.callback(self._layouts.save, window)
            ending.callback(self._preferences.save)
            for close in reversed(self.closers):
                ending.callback(close)
            run = self._workspace.run
            if run is not None and run.path.exists():
                self._preferences.change(last_run=str(run.path))

    def _close_window(self) -> None:
        self._window.may_close = True
        self._window.close()

    @Slot()
    def _on_still_busy(self) -> None:
        quit_now = BarAction(text=tr("Quit now"), run=lambda: os._exit(0))
        text = tr("The update is still being computed. Every finished update is on disk; you can wait or quit now.")
        self._window.messages.post(Message(text=text, severity=Severity.WARNING, actions=(quit_now,), id="busy"))
