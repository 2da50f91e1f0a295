"""Storage of the speaker's notes, which are written shortly after the last change and read at the next start."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot

from app.clock import Timer
from app.settings.files import write_or_say
from app.teaching.presenting.speaker import SpeakerWindow
from grpo_core.text import tr

LARGEST = 1_000_000
"""Maximum size in bytes of a notes file that is read."""
SETTLE_MS = 2000


class NotesFile(QObject):
    """Stores the notes of a speaker's window in a text file.

    Signals:
        refused: emitted with the reason, as a sentence, if the notes could not be written.
    """

    refused = Signal(str)

    def __init__(self, path: Path, speaker: SpeakerWindow, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._path, self._speaker = path, speaker
        self._later = Timer(self, self.save, SETTLE_MS)
        speaker.set_text(_read(path))
        speaker.noted.connect(self._later.start)

    @Slot()
    def save(self) -> None:
        """Write the notes now."""
        self._later.stop()
        refusal = write_or_say(self._path, self._speaker.text.encode("utf-8", "replace"), tr("The notes"))
        if refusal:
            self.refused.emit(refusal)

    def close(self) -> None:
        """Write pending changes."""
        if self._later.isActive():
            self.save()


def _read(path: Path) -> str:
    """Return the stored notes, or an empty string if they cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(LARGEST).decode("utf-8", errors="replace")
    except OSError:
        return ""
