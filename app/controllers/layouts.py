"""The controller of named layouts, both built-in and user-defined."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QInputDialog

from app.controllers.program import Program
from app.window.layouts import BANDIT, LANGUAGE, LAYOUTS, RECORDED, layout_for
from grpo_core.text import tr


class LayoutsController(QObject):
    """Arranges the docks of a window.

    Signals:
        changed: emitted when the set of user-defined layouts changes.
    """

    changed = Signal()

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self._window, self._workspace = program.window, program.workspace
        self._files, self._preferences = program.layout_files, program.preferences

    @property
    def saved(self) -> tuple[str, ...]:
        return self._files.names()

    def choose(self, name: str) -> None:
        """Arrange the docks according to the named layout, and store it as the user's preference."""
        if name in LAYOUTS:
            self._window.show_layout(name)
        else:
            self._window.leave_alone()
            self._window.messages.say(self._files.restore(self._window, name))
        self._preferences.change(layout=name)

    def reset(self) -> None:
        """Restore the original layout for the kind of run shown. While presenting, wait until that ends."""
        made = self._made_for_run()
        if not self._workspace.mode.takeover.presenting:
            self.choose(made)
            return
        self._window.saved_docks.replace(partial(self._window.show_layout, made))
        self._preferences.change(layout=made)
        self._workspace.mode.size_changed.emit()

    def suit(self) -> None:
        """Switch to the layout for the current kind of run if the last chosen layout is for another kind."""
        made = self._made_for_run()
        if self._preferences.current.layout in {BANDIT, LANGUAGE, RECORDED} - {made}:
            self.reset()

    def _made_for_run(self) -> str:
        return layout_for(self._workspace.view.run.origin.settings)

    def ask_save(self) -> None:
        """Ask for a name, and save the arrangement of the docks under it."""
        name, accepted = QInputDialog.getText(self._window, tr("Save layout"), tr("Name of the layout"))
        if accepted and name:
            self._window.messages.say(self._files.save(self._window, name))
            self.changed.emit()
