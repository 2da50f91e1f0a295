"""The clock that moves the cursor through the film of an update."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot

from app.workspace.cursor import Cursor
from app.workspace.film import Film
from app.workspace.workspace import Workspace

TICK_MS = 33
"""Milliseconds between two frames of a film, for 30 frames per second."""


class FilmClock(QObject):
    """A clock that plays a film by moving the cursor.

    It pauses when the user scrubs, and ends when anything else moves the cursor.

    Attributes:
        clock: a monotonic clock in seconds; a test can pass its own and call :meth:`tick`.
        film: the film being played or paused; None if there is none.
        playing: whether the film is being played rather than paused.

    Signals:
        changed: emitted when the film starts, pauses or ends.
        finished: emitted when a film has been played to its end.
    """

    changed = Signal()
    finished = Signal()

    def __init__(
        self, workspace: Workspace, clock: Callable[[], float] = time.monotonic, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._workspace = workspace
        self.clock = clock
        self.film: Film | None = None
        self.playing = False
        self._played = self._last = 0.0
        self._shown = Cursor()
        self._whole = False
        self._timer = QTimer(self)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.setInterval(TICK_MS)
        self._timer.timeout.connect(self.tick)

    def play(self, film: Film, *, whole: bool = False) -> None:
        """Play ``film`` from the beginning. With ``whole``, the update is fully revealed at the end."""
        self.pause()
        self.film, self._played, self._whole = film, 0.0, whole
        self._show()
        self.resume()

    def resume(self) -> None:
        """Resume the film at the position where it was paused."""
        if self.film is not None and not self.playing:
            self._last = self.clock()
            self.playing = True
            self._timer.start()
            self.changed.emit()

    def pause(self) -> None:
        """Pause the film at its current position."""
        if self.playing:
            self.playing = False
            self._timer.stop()
            self.changed.emit()

    def end(self) -> None:
        """Discard the film. The cursor stays where it is."""
        self.pause()
        self.film = None

    @property
    def whole(self) -> bool:
        """Whether the film covers an entire update rather than one stage."""
        return self.playing and self._whole

    @property
    def paused(self) -> bool:
        """Whether a film is paused and its update is still displayed as the film left it."""
        return self.film is not None and not self.playing and self._workspace.cursor == self._shown

    def scrub(self, film: Film, seconds: float) -> None:
        """Pause ``film`` at ``seconds`` after the cursor's current position in it."""
        self.pause()
        self.film, self._whole = film, True
        self._played = min(max(film.seconds_at(self._workspace.cursor) + seconds, 0.0), film.seconds)
        if self._played >= film.seconds:
            self._finish()
        else:
            self._show()

    @Slot()
    def tick(self) -> None:
        """Move the cursor to the current position of the film. If anything else has moved the cursor, the film ends."""
        if self.film is None or not self.playing:
            return
        if self._workspace.cursor != self._shown:
            self.end()
            return
        now = self.clock()
        self._played += max(now - self._last, 0.0)
        self._last = now
        if self._played >= self.film.seconds:
            self._finish()
        else:
            self._show()

    def _finish(self) -> None:
        assert self.film is not None
        end = Cursor() if self._whole else self.film.at(math.inf)
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
