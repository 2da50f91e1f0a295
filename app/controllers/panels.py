"""The controller of panels: shows and hides them by id, and finds the one with the keyboard focus."""

from __future__ import annotations

from typing import TypeVar

from PySide6.QtWidgets import QApplication, QWidget

from app.controllers.program import Program
from app.plotting.twin_stack import TwinStack
from app.widgets.panel import Panel, in_window

W = TypeVar("W", bound=QWidget)


class PanelsController:
    """The panels of one window."""

    def __init__(self, program: Program) -> None:
        self._window, self._holders = program.window, program.window.holders

    def is_shown(self, id: str) -> bool:
        """Return whether the panel ``id`` is shown, even if behind another tab."""
        return self._holders[id].isVisible()

    def toggle(self, id: str) -> None:
        """Hide the panel ``id`` if it is seen, otherwise bring it to the front."""
        holder = self._holders[id]
        seen = in_window(holder)
        self._window.leave_alone()
        holder.setVisible(not seen)
        if not seen:
            holder.raise_()
            self._window.panels[id].focus_picture()

    def in_focus(self) -> Panel | None:
        """Return the panel with the keyboard focus."""
        return _around_focus(Panel)  # type: ignore[type-abstract]

    def plot_in_focus(self) -> TwinStack | None:
        """Return the plot with the keyboard focus that can also be shown as a table."""
        return _around_focus(TwinStack)


def _around_focus(kind: type[W]) -> W | None:
    """Return the widget of class ``kind`` that has the focus or contains the focused widget."""
    widget = QApplication.focusWidget()
    while widget is not None and not isinstance(widget, kind):
        widget = widget.parentWidget()
    return widget
