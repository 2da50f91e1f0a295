"""The few seconds in which an answer appears: one clock, from 0 to 1."""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer, Signal, Slot

FRAME_MS = 16
FILM_SECONDS, CHANGE_SECONDS = 3.0, 2.0
"""Of a run that is trained before one's eyes, and of a picture that changes into another."""


class Reveal(QObject):
    """Plays once from 0 to 1, and then rests at 1.

    Attributes:
        moves: whether anything plays; with reduced motion every reveal is over at once.
        clock: seconds that only grow; tests bring their own.
        share: how much has been played, 0 to 1.

    Signals:
        played: ``share`` is another one.
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
        """Whether an answer is appearing at this moment."""
        return self.share < 1.0

    @property
    def eased(self) -> float:
        """The share with a gentle beginning and end, 0 to 1."""
        return self.share * self.share * (3 - 2 * self.share)

    def play(self, seconds: float) -> None:
        """Begin at 0. Over at once where nothing moves."""
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
        """Show how much the clock says has been played."""
        share = min((self.clock() - self._begun) / self._seconds, 1.0)
        if share >= 1.0:
            self.finish()
        else:
            self.share = max(share, 0.0)
            self.played.emit()
