"""Larger or smaller type: the docks are arranged for its size, and found as they were on the way back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QByteArray, QObject, QTimer, Slot

from app.window.layouts import LAYOUTS, layout_for, settle, size_class

if TYPE_CHECKING:
    from app.application import Application


SETTLE_MS = 60
"""Until the panels have found their heights: two frames."""


class Zooming(QObject):
    """Keeps the window within its screen where the layout that stands has no room for larger type.

    Within a class of sizes (:func:`app.window.layouts.size_class`) nothing moves. Lessons and presenting arrange the
    docks themselves; what they give back is arranged afterwards.
    """

    def __init__(self, program: Application) -> None:
        super().__init__(program)
        self._p = program
        self._scale = program.look.scale
        self._kept: dict[int, QByteArray] = {}
        self._at_work = False
        self._again = QTimer(self)
        self._again.setSingleShot(True)
        self._again.setInterval(SETTLE_MS)
        self._again.timeout.connect(self._on_settled)
        program.window.arranged.connect(self._on_arranged)
        program.lessons.player.changed.connect(self.adapt)

    @property
    def busy(self) -> bool:
        """Whether heights are still to be shared out."""
        return self._again.isActive()

    @Slot()
    def adapt(self) -> None:
        """Arrange the docks for the size of type that there is now, if another one wants them otherwise."""
        program, window, scale = self._p, self._p.window, self._p.look.scale
        size = window.size()
        before, wanted = size_class(size, self._scale), size_class(size, scale)
        if scale == self._scale:
            return
        if program.presenter.active and not program.lessons.given:
            program.presenter.arrange_later()
        if window.saved_docks.lent:
            return
        self._scale = scale
        if wanted == before:
            return
        self._kept[before] = window.saveState()
        former = self._kept.pop(wanted, None)
        if former is None or not window.restoreState(former):
            self._arrange()
            self._again.start()
        window.resize(size)

    @Slot()
    def _on_settled(self) -> None:
        settle(self._p.window, self._p.window.docks)

    def _arrange(self) -> None:
        """The layout that was chosen last, as it is for this size of type."""
        language = self._p.workspace.view.run.origin.settings.is_language
        chosen = self._p.preferences.layout
        self._at_work = True
        self._p.window.show_layout(chosen if chosen in LAYOUTS else layout_for(language))
        self._at_work = False

    @Slot()
    def _on_arranged(self) -> None:
        """Somebody has chosen a layout: there is nothing to go back to."""
        if not (self._at_work or self._p.window.saved_docks.lent):
            self._again.stop()
            self._scale = self._p.look.scale
            self._kept.clear()
