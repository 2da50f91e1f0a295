"""Modes that take over the window for a time: a lesson, or presenting."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from app.workspace.view import View


class Takeover:
    """Base of the modes in which a part replaces the user's own work. This one shows nothing.

    Attributes:
        hides_run: whether its picture does not show the run, which is then neither trained nor replayed by commands.
        presenting: whether the window is shown to an audience, with a look and a layout that are not preferences.
        own: the view of the user's own run, kept while a lesson shows runs of its own; None otherwise.
    """

    @property
    def lesson(self) -> bool:
        return False

    @property
    def hides_run(self) -> bool:
        return False

    @property
    def presenting(self) -> bool:
        return False

    @property
    def own(self) -> View | None:
        return None


class WindowMode(QObject):
    """Tells the lab whether a part has taken over the window.

    Signals:
        lesson_changed: emitted when a lesson opens, ends, or shows another step.
        presenting_changed: emitted when presenting begins or ends.
        size_changed: emitted when whoever presents should arrange the docks again.
    """

    lesson_changed = Signal()
    presenting_changed = Signal()
    size_changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.takeover = Takeover()
