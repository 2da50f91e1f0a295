"""The status text on the right of the transport: where the run is stored, or the reason for a wait."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSize, Slot

from app.clock import Timer
from app.theme.labels import Label
from grpo_core.progress import Phase, Progress
from grpo_core.text import tr

LOADING = tr("Loading the language model")
DOTS = ("", " ·", " · ·", " · · ·")
PATIENCE_MS, BEAT_MS = 300, 600
"""Milliseconds before a wait is shown, and between two dots after that."""
ANNOUNCE_MS = 1000
"""Minimum number of milliseconds between two announcements to a screen reader."""
PHASES = {
    Phase.SAMPLING: tr("Sampling: token {done} of {total}"),
    Phase.REFERENCE: tr("Scoring with the reference"),
    Phase.MEASURING: tr("Measuring on held-out prompts"),
    Phase.TRAINING: tr("Pass {done} of {total}"),
    Phase.SCORING: tr("Scoring after the update"),
}
"""Messages for the phases of a long update."""
SAMPLING_SHARE = tr("Sampling: token {done} of {total}, {share:.0%} written")
"""Text shown while completions are sampled, if the share written so far is known."""
LARGEST = 9999
"""Largest number in a progress message for which space is reserved."""


class Status(Label):
    """The status text. During a wait, a message with dots that slowly appear; during a long update, its progress.

    Attributes:
        moving: whether the dots appear one by one; with reduced motion all are shown.
    """

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("muted")
        self.moving = True
        self._status_text = ""
        self._progress_text = ""
        self._waits = self._keeps_space = False
        self._shown: tuple[str, list[str]] | None = None
        self._dots = 0
        self._patience = Timer(self, self._on_late, PATIENCE_MS)
        self._beat = Timer(self, self._on_beat, BEAT_MS, repeats=True)
        self._silence = Timer(self, self._announce, ANNOUNCE_MS)

    def say(self, text: str) -> None:
        """Show ``text`` after the current wait or long update, if any."""
        self._status_text = text
        self._show()

    def wait_for(self, loading: bool) -> None:
        """Start or end the wait for the model."""
        if loading == self._waits:
            return
        self._waits = loading
        self._patience.stop()
        self._beat.stop()
        if loading:
            self._patience.start()
        else:
            self._dots = 0
            self._show()

    def follow(self, progress: Progress | None, *, computing: bool) -> None:
        """Show the progress of a long update, or none.

        Args:
            computing: whether updates are being computed; after a long one, space for the next message is kept.
        """
        text = ""
        if progress is not None:
            pattern = PHASES[progress.phase] if progress.share is None else SAMPLING_SHARE
            text = pattern.format(done=progress.done, total=progress.total, share=progress.share)
        self._keeps_space = computing and (self._keeps_space or bool(text))
        self._progress_text = text
        self._show()

    @property
    def late(self) -> bool:
        """Whether a model has been loading for so long that the window shows it."""
        return self._waits and not self._patience.isActive()

    @property
    def needed(self) -> bool:
        """Whether the text is shown even if space is short: during a wait, and while updates are long."""
        return self.late or self._keeps_space

    @Slot()
    def _on_late(self) -> None:
        self._dots = len(DOTS) - 1
        self._show()
        if self.moving:
            self._beat.start()

    @Slot()
    def _on_beat(self) -> None:
        self._dots = (self._dots + 1) % len(DOTS)
        self._show()

    def _show(self) -> None:
        """Show the most important text, in a width that is constant throughout a wait."""
        text, widest = self._progress_text or self._status_text, list[str]()
        if self.late:
            text, widest = LOADING + DOTS[self._dots], [LOADING + DOTS[-1]]
        elif self._keeps_space:
            sentences = (*PHASES.values(), SAMPLING_SHARE)
            widest = [sentence.format(done=LARGEST, total=LARGEST, share=1) for sentence in sentences]
        if (text, widest) == self._shown:
            return
        self._shown = text, list(widest)
        metrics = self.fontMetrics()
        broadest = max("0123456789", key=metrics.horizontalAdvance)
        widest.append("".join(broadest if letter.isdecimal() else letter for letter in text))
        space = QSize(max(map(metrics.horizontalAdvance, widest)) + 2, metrics.height() + 2)
        if space != self.minimumSize():
            self.setFixedSize(space)  # so that new text does not trigger a new layout
        if self.text() != text:
            self.setText(text)
            if not self._silence.isActive():
                self._announce()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self._shown = None
            self._show()

    @Slot()
    def _announce(self) -> None:
        """Expose the text to screen readers as the accessible name.

        An unnamed label would announce each change of its text.
        """
        if self.accessibleName() != self.text():
            self.setAccessibleName(self.text())
            self._silence.start()
