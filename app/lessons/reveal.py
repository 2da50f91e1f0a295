"""The clock of the short animation that reveals an answer, from 0 to 1."""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer, Signal, Slot

FRAME_MS = 16
FILM_SECONDS, CHANGE_SECONDS = 3.0, 2.0
"""Duration in seconds of a film of a run in training, and of the transition from one picture to another."""


class Reveal(QObject):
    """An animation that plays once from 0 to 1 and then stays at 1.

    Attributes:
        moves: whether to animate; with reduced motion, every reveal ends immediately.
        clock: a monotonic clock in seconds, which tests replace.
        share: the share played so far, 0 to 1.

    Signals:
        played: emitted when ``share`` changes.
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
        """The share with ease-in-out applied, 0 to 1."""
        return self.share * self.share * (3 - 2 * self.share)

    def play(self, seconds: float) -> None:
        """Start the animation, which lasts ``seconds``. If ``moves`` is False, it ends immediately."""
        if not self.moves:
            self.finish()
            return
        self._begun, self._seconds, self.share = self.clock(), seconds, 0.0
        self._ticks.start()
        self.played.emit()

    def finish(self) -> None:
        """Jump to the end."""
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
