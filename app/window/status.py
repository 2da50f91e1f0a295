"""The words at the right of the transport: where the run is kept, or that its model is being loaded."""

from __future__ import annotations

from PySide6.QtCore import QTimer, Slot
from PySide6.QtWidgets import QWidget

from app.theme.labels import Label
from grpo_core.text import tr

LOADING = tr("Loading the language model")
DOTS = ("", " ·", " · ·", " · · ·")
PATIENCE_MS, BEAT_MS = 300, 600
"""Nothing is said of a wait that is shorter than the first; after it, one dot more at each of the second."""


class Status(Label):
    """A few words; during a wait, a sentence with dots that come slowly.

    Attributes:
        moving: whether the dots come one by one; with reduced motion they all stand there.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent=parent)
        self.setObjectName("muted")
        self.moving = True
        self._status_text = ""
        self._waits = False
        self._dots = 0
        self._patience = QTimer(self)
        self._patience.setSingleShot(True)
        self._patience.setInterval(PATIENCE_MS)
        self._patience.timeout.connect(self._on_late)
        self._beat = QTimer(self)
        self._beat.setInterval(BEAT_MS)
        self._beat.timeout.connect(self._on_beat)

    def say(self, text: str) -> None:
        """Show ``text``, during a wait after it."""
        self._status_text = text
        if not self.late and self.text() != text:
            self.setText(text)

    def wait_for(self, loading: bool) -> None:
        """Begin or end the wait for the model."""
        if loading == self._waits:
            return
        self._waits = loading
        self._patience.stop()
        self._beat.stop()
        if loading:
            self._patience.start()
        else:
            self._dots = 0
            self.setMinimumWidth(0)
            self.setText(self._status_text)

    @property
    def late(self) -> bool:
        """Whether the wait is long enough to be shown."""
        return self._waits and not self._patience.isActive()

    @Slot()
    def _on_late(self) -> None:
        self._dots = len(DOTS) - 1
        self.setMinimumWidth(self.fontMetrics().horizontalAdvance(LOADING + DOTS[-1]) + 2)  # what is beside stays
        self.setText(LOADING + DOTS[self._dots])
        if self.moving:
            self._beat.start()

    @Slot()
    def _on_beat(self) -> None:
        self._dots = (self._dots + 1) % len(DOTS)
        self.setText(LOADING + DOTS[self._dots])
