"""The clock of the short animation that reveals an answer, from 0 to 1."""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer, Signal, Slot

FRAME_MS = 16
FILM_SECONDS, CHANGE_SECONDS = 3.0, 2.0
"""Seconds of a film of a run in training, and of a change from one picture into another."""


class Reveal(QObject):
    """Plays once from 0 to 1, and then stays at 1.

    Attributes:
        moves: whether there is an animation; with reduced motion every reveal is over at once.
        clock: a monotonic clock in seconds; tests pass their own.
        share: the played share, 0 to 1.

    Signals:
        played: ``share`` has changed.
    """

    played = Signal()

    def __init__(self, clock: Callable[[], float] = time.monotonic, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.moves = True
        self.clock = clock
        self.share = 1.0
        self._begun, self._seconds = 0.0, FILM_SECONDS
        self._ticks = QTimer(self)
        self._ticks.setInterval(FRAME_MS)
        self._ticks.timeout.connect(self.tick)

    @property
    def playing(self) -> bool:
        """Whether an answer is being revealed."""
        return self.share < 1.0

    @property
    def eased(self) -> float:
        """The share with ease-in-out, 0 to 1."""
        return self.share * self.share * (3 - 2 * self.share)

    def play(self, seconds: float) -> None:
        """Start at 0. It is over at once if ``moves`` is False."""
        if not self.moves:
            self.finish()
            return
        self._begun, self._seconds, self.share = self.clock(), seconds, 0.0
        self._ticks.start()
        self.played.emit()

    def finish(self) -> None:
        """Go to the end."""
        self._ticks.stop()
        if self.playing:
            self.share = 1.0
            self.played.emit()

    @Slot()
    def tick(self) -> None:
        """Advance to the share given by the clock."""
        share = min((self.clock() - self._begun) / self._seconds, 1.0)
        if share >= 1.0:
            self.finish()
        else:
            self.share = max(share, 0.0)
            self.played.emit()
