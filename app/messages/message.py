"""A message that does not interrupt the user's work: text, severity, and buttons."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from PySide6.QtGui import QColor, QPalette

from grpo_core.text import tr

READ_MS, MS_A_LETTER = 5000, 60
"""Milliseconds for which information is shown: a base time for noticing it, and an additional time per character."""


class Severity(Enum):
    """The severity of a message: its word for screen readers, its letter, its colours on light and dark backgrounds."""

    INFO = (tr("Note"), "i", "#0072B2", "#56B4E9")
    WARNING = (tr("Warning"), "!", "#B87400", "#F0B429")
    ERROR = (tr("Error"), "×", "#D55E00", "#FF8A4C")

    def __init__(self, word: str, sign: str, on_light: str, on_dark: str) -> None:
        self.word, self.sign, self.on_light, self.on_dark = word, sign, on_light, on_dark

    def colour(self, palette: QPalette) -> QColor:
        """Return the colour that contrasts with the window's background."""
        dark = palette.color(QPalette.ColorRole.Window).lightness() < 128
        return QColor(self.on_dark if dark else self.on_light)


@dataclass(frozen=True, kw_only=True)
class BarAction:
    """A button of a message.

    Attributes:
        text: its label, beginning with a verb.
        run: the function to call in the GUI thread.
        closes: whether pressing the button also closes the message.
    """

    text: str
    run: Callable[[], None]
    closes: bool = True


@dataclass(frozen=True, kw_only=True)
class Message:
    """A message to the user, with possible actions.

    Attributes:
        text: one or two sentences of plain text.
        id: a message replaces an older one with the same ID; if empty, the text is the ID.
    """

    text: str
    severity: Severity = Severity.INFO
    actions: tuple[BarAction, ...] = ()
    id: str = ""

    @property
    def key(self) -> str:
        return self.id or self.text

    @property
    def leaves(self) -> bool:
        """Whether the message disappears on its own after it could be read. Only information without buttons does."""
        return self.severity is Severity.INFO and not self.actions

    @property
    def reading_ms(self) -> int:
        """Milliseconds that a slow reader needs to read the message."""
        return READ_MS + MS_A_LETTER * len(self.text)
