"""The clock of the short animation that reveals an answer, from 0 to 1."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, Slot

from app.clock import Timer
from app.workspace.film import eased

FRAME_MS = 16
FILM_SECONDS, CHANGE_SECONDS = 3.0, 2.0
"""Seconds of a film of a run in training, and of a change from one picture into another."""


class Reveal(QObject):
    """Plays once from 0 to 1, and then stays at 1.

    Attributes:
        moves: whether there is an animation; with reduced motion every reveal is over at once.
        ticks: its timer, which may have a clock of its own.
        share: the played share, 0 to 1.

    Signals:
        played: ``share`` has changed.
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
        """Whether an answer is being revealed."""
        return self.share < 1.0

    @property
    def eased(self) -> float:
        """The share with ease-in-out, 0 to 1."""
        return eased(self.share)

    def play(self, seconds: float) -> None:
        """Start at 0. It is over at once if ``moves`` is False."""
        if not self.moves:
            self.finish()
            return
        self._begun, self._seconds, self.share = self.ticks.now(), seconds, 0.0
        self.ticks.start()
        self.played.emit()

    def finish(self) -> None:
        """Go to the end."""
        self.ticks.stop()
        if self.playing:
            self.share = 1.0
            self.played.emit()

    @Slot()
    def _on_tick(self) -> None:
        """Advance to the share given by the clock."""
        share = (self.ticks.now() - self._begun) / self._seconds
        if share >= 1.0:
            self.finish()
        else:
            self.share = share
            self.played.emit()
