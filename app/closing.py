"""The end of a window: the worker first, then the files, then the widgets."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QApplication

from app.messages.message_bar import BarAction, Message, Severity
from grpo_core.text import tr

if TYPE_CHECKING:
    from app.application import Application


class Closing(QObject):
    """Takes a program apart in the right order; while an update is finishing, it says so and waits."""

    def __init__(self, program: Application) -> None:
        super().__init__(program)
        self._p = program
        program.controller.finished.connect(self._on_finished)
        program.controller.still_busy.connect(self._on_still_busy)

    @Slot()
    def close(self) -> None:
        """Stop the worker, then close the window."""
        program = self._p
        program.lessons.player.leave()
        program.player.stop()
        if program.controller.shutdown(timeout=0.2):
            self._on_finished()
        else:
            text = tr("Finishing update {head}, then the window closes.").format(head=program.controller.head + 1)
            program.say(text, "info")

    @Slot()
    def _on_finished(self) -> None:
        program = self._p
        if program.window.may_close:
            return
        run = program.workspace.run
        if run is not None and run.path.exists():
            program.preferences = program.preferences.replace(last_run=str(run.path))
        program.queues.close()
        program.offers.close()
        program.prompts.close()
        program.desk.close()
        program.exports.close()
        program.presenter.close()
        program.save_now()
        program.layouts.save(program.window)
        for panel in program.window.panels.made.values():
            panel.let_go()
        program.workspace.close()
        program.window.may_close = True
        program.window.close()
        QApplication.quit()

    @Slot()
    def _on_still_busy(self) -> None:
        quit_now = BarAction(text=tr("Quit now"), run=lambda: os._exit(0))
        text = tr("The update is still being computed. Every finished update is on disk; you can wait or quit now.")
        self._p.window.messages.post(Message(text=text, severity=Severity.WARNING, actions=(quit_now,), id="busy"))
