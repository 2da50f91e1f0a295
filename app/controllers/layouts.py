"""The controllers of named layouts, both built-in and user-defined, and of their adaptation to the font size.

Docks are rearranged for larger type, and restored when it becomes smaller again.
"""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QByteArray, QEvent, QObject, Signal, Slot
from PySide6.QtWidgets import QInputDialog

from app.clock import Timer
from app.controllers.program import Program
from app.window.docks import put_back
from app.window.layouts import BANDIT, LANGUAGE, LAYOUTS, RECORDED, layout_for, settle, size_class
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


SETTLE_MS = 60
"""Milliseconds until the panels have their final heights: two frames."""


class Zooming(QObject):
    """Keeps the window within its screen when the current layout does not fit larger type.

    Within a size class (:func:`app.window.layouts.size_class`) nothing moves. Lessons and presenting mode arrange
    the docks themselves, and restored docks are arranged afterwards.
    """

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self._window, self._workspace, self._look = program.window, program.workspace, program.look
        self._preferences, self._mode = program.preferences, program.workspace.mode
        self._scale = self._look.scale
        self._states: dict[int, QByteArray] = {}
        self._arranging = False
        self._later = Timer(self, self._on_settled, SETTLE_MS)
        self._window.arranged.connect(self._on_arranged)
        self._window.installEventFilter(self)
        self._mode.lesson_changed.connect(self.adapt)
        self._window.left_alone.connect(self.adapt)

    @property
    def busy(self) -> bool:
        """Whether heights still have to be adjusted."""
        return self._later.isActive()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Restore the heights of the short rows after the window has been resized, because Qt gives them a share of
        the height.
        """
        if event.type() is QEvent.Type.Resize and not self._window.saved_docks.lent:
            self._later.start()
        return False

    @Slot()
    def adapt(self) -> None:
        window, scale, size = self._window, self._look.scale, self._window.size()
        before, wanted = size_class(size, self._scale), size_class(size, scale)
        if scale == self._scale:
            return
        if self._mode.takeover.presenting and not self._mode.takeover.lesson:
            self._mode.size_changed.emit()
        if window.saved_docks.lent or window.alone:
            return
        self._scale = scale
        self._later.start()  # the rows request another height with the next picture
        if wanted == before:
            return
        self._states[before] = window.saveState()
        state = self._states.pop(wanted, None)
        if state is None or not put_back(window, window.docks, state):
            self._arrange()
        window.resize(size)

    @Slot()
    def _on_settled(self) -> None:
        for dock in self._window.docks.values():  # while Qt restores docks, some are not yet marked as tabs
            dock.refresh_title()
        settle(self._window, self._window.docks)

    def _arrange(self) -> None:
        """Apply the last chosen layout in its variant for this font size."""
        made = layout_for(self._workspace.view.run.origin.settings)
        chosen = self._preferences.current.layout
        self._arranging = True
        self._window.show_layout(chosen if chosen in LAYOUTS else made)
        self._arranging = False

    @Slot()
    def _on_arranged(self) -> None:
        """Discard the earlier arrangement, because a layout was chosen."""
        if not (self._arranging or self._window.saved_docks.lent):
            self._later.start()  # the font size may have just changed, and rows request their heights later
            self._scale = self._look.scale
            self._states.clear()
