"""The clock that moves the cursor through the film of an update."""

from __future__ import annotations

import math

from PySide6.QtCore import QObject, Qt, Signal, Slot

from app.clock import Timer
from app.workspace.cursor import Cursor
from app.workspace.film import Film
from app.workspace.workspace import Workspace

TICK_MS = 33
"""Milliseconds between two frames of a film, for 30 frames per second."""


class FilmClock(QObject):
    """A clock that plays a film by moving the cursor.

    It ends when anything else moves the cursor.

    Attributes:
        film: the film being played or paused; None if there is none.

    Signals:
        changed: emitted when the film starts, pauses or ends.
        finished: emitted when a film has been played to its end.
    """

    changed = Signal()
    finished = Signal()

    def __init__(self, workspace: Workspace, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._workspace = workspace
        self.film: Film | None = None
        self._played = self._last = 0.0
        self._shown = Cursor()
        self._ticks = Timer(self, self._on_tick, TICK_MS, repeats=True)
        self._ticks.setTimerType(Qt.TimerType.PreciseTimer)

    def play(self, film: Film) -> None:
        """Play ``film`` from the beginning. If it covers an entire update, the update is fully revealed at the end."""
        self.pause()
        self.film, self._played = film, 0.0
        self._show()
        self.resume()

    def resume(self) -> None:
        if self.film is not None and not self.playing:
            self._last = self._ticks.now()
            self._ticks.start()
            self.changed.emit()

    def pause(self) -> None:
        if self.playing:
            self._ticks.stop()
            self.changed.emit()

    def end(self) -> None:
        self.pause()
        self.film = None

    @property
    def playing(self) -> bool:
        return self._ticks.isActive()

    @property
    def whole(self) -> bool:
        """Whether the film of an entire update, rather than of one stage, is playing."""
        return self.playing and self.film is not None and self.film.whole

    @property
    def paused(self) -> bool:
        """Whether a film is paused and the cursor is still where the film left it."""
        return self.film is not None and not self.playing and self._workspace.cursor == self._shown

    @Slot()
    def _on_tick(self) -> None:
        """Show the film's current position. If anything else has moved the cursor, the film ends."""
        if self._workspace.cursor != self._shown:
            self.end()
            return
        now = self._ticks.now()
        played, self._last = self._played + now - self._last, now
        self._go_to(played)

    def _go_to(self, seconds: float) -> None:
        assert self.film is not None
        self._played = seconds
        if seconds < self.film.seconds:
            self._show()
            return
        end = Cursor() if self.film.whole else self.film.at(math.inf)
        self._workspace.show_stage(end.stage, end.passed)
        self.end()
        self.finished.emit()

    def _show(self) -> None:
        assert self.film is not None
        here = self.film.at(self._played)
        if here.step != self._workspace.cursor.step:
            self.end()
            return
        self._workspace.show_stage(here.stage, here.passed, here.progress, quick=self.film.quick)
        self._shown = self._workspace.cursor
