"""The short animation that reveals an answer."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, Slot

from app.clock import Timer

FRAME_MS = 16
FILM_SECONDS, CHANGE_SECONDS = 3.0, 2.0
"""Durations in seconds of a film of a run in training, and of the transition from one picture to another."""


class Reveal(QObject):
    """An animation that plays once from 0 to 1 and then stays at 1.

    Attributes:
        moves: whether to animate. With reduced motion, every reveal ends immediately.
        ticks: the timer, which can have its own clock.
        share: the share played so far, from 0 to 1.

    Signals:
        played: emitted when ``share`` changes.
    """

    played = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.moves = True
        self.ticks = Timer(self, self._on_tick, FRAME_MS, repeats=True)
        self.share = 1.0
        self._begun, self._seconds = 0.0, FILM_SECONDS

    @property
    def playing(self) -> bool:
        return self.share < 1.0

    def play(self, seconds: float) -> None:
        """Start the animation, which lasts ``seconds``. If ``moves`` is False, it ends immediately."""
        if not self.moves:
            self.finish()
            return
        self._begun, self._seconds, self.share = self.ticks.now(), seconds, 0.0
        self.ticks.start()
        self.played.emit()

    def finish(self) -> None:
        """Jump to the end of the animation."""
        self.ticks.stop()
        if self.playing:
            self.share = 1.0
            self.played.emit()

    @Slot()
    def _on_tick(self) -> None:
        share = (self.ticks.now() - self._begun) / self._seconds
        if share >= 1.0:
            self.finish()
        else:
            self.share = share
            self.played.emit()
