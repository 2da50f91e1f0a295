"""Keys and clicks that resume or end a film: a click on it, Enter, and any key without another function."""

from __future__ import annotations

from typing import cast

from PySide6.QtCore import QEvent, QObject, QPointF, Qt, Slot
from PySide6.QtGui import QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QAbstractScrollArea, QApplication, QWidget

from app.controllers.first_steps import FirstSteps
from app.controllers.program import Program
from app.plotting.bar_chart import BarChart
from app.plotting.chart import CLICK
from app.token_grid.grid import TokenGrid
from app.widgets.panel import Panel, around

Key = Qt.Key
ENTER = (Key.Key_Return, Key.Key_Enter)
APART = (
    Key.Key_Shift, Key.Key_Control, Key.Key_Alt, Key.Key_Meta, Key.Key_AltGr, Key.Key_Escape, Key.Key_Tab,
    Key.Key_Backtab,
)  # fmt: skip # short names, side by side
"""Modifier keys, and keys that have the same function in every program."""
COMMANDING = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.AltModifier | Qt.KeyboardModifier.MetaModifier


class FilmKeys(QObject):
    """Resumes or ends a film when the user presses a key or clicks on the film.

    Commands and the focused widget handle a key first; only keys that reach the window count. While the picture of a
    film has the focus, Enter counts as well.
    """

    def __init__(self, program: Program, first_steps: FirstSteps) -> None:
        super().__init__(program)
        self._window, self._player, self._first_steps = program.window, program.player, first_steps
        self._pressed = QPointF()
        self._window.installEventFilter(self)
        cast(QApplication, QApplication.instance()).focusChanged.connect(self._on_focus)

    @property
    def waits(self) -> bool:
        """Whether a key resumes or ends a film.

        This is the case if a film is paused, or if the first steps are playing the film of an update.
        """
        return self._player.film.paused or self._first_steps.explains

    @Slot("QWidget*", "QWidget*")
    def _on_focus(self, old: QWidget | None, new: QWidget | None) -> None:
        for widget in _parts(old):
            widget.removeEventFilter(self)
        for widget in _parts(new):
            widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        match event.type():
            case QEvent.Type.KeyPress if self.waits:
                press = cast(QKeyEvent, event)
                if _is_ordinary(press) and (watched is self._window or press.key() in ENTER):
                    self._player.go_on()
                    return True
            case QEvent.Type.MouseButtonPress if watched is not self._window:
                self._pressed = cast(QMouseEvent, event).position()
            case QEvent.Type.MouseButtonRelease if self.waits and watched is not self._window:
                release = cast(QMouseEvent, event)
                still = (release.position() - self._pressed).manhattanLength() <= CLICK
                if still and release.button() is Qt.MouseButton.LeftButton:
                    self._player.go_on()  # the click also selects what is under it
        return False


def _is_ordinary(event: QKeyEvent) -> bool:
    function = Key.Key_F1 <= event.key() <= Key.Key_F35
    return not (event.modifiers() & COMMANDING or event.key() in APART or function)


def _parts(widget: QWidget | None) -> list[QWidget]:
    """Return the widget and its viewport, if any. The list is empty if the widget is not the picture of a film."""
    if not isinstance(widget, (BarChart, TokenGrid)):
        return []
    panel = around(widget, Panel)
    if panel is None or not panel.films:
        return []
    return [widget, widget.viewport()] if isinstance(widget, QAbstractScrollArea) else [widget]
