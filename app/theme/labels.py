"""Labels and tooltips: what they show is plain text, unless it is our own and says so.

Qt guesses: a text that looks like HTML is laid out as HTML. The vocabulary of a run, its title or a prompt come from a
file that anybody may have written, and an ``<img>`` in it would open a file of this computer, or ask another host.
"""

from __future__ import annotations

import html

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QWidget


class Label(QLabel):
    """A label that shows its text letter by letter."""

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(text, parent)
        self.setTextFormat(Qt.TextFormat.PlainText)


class EmptyLabel(Label):
    """A sentence, in the middle of a panel that has nothing to show, on what will be there.

    Args:
        margin: pixels around it.
    """

    def __init__(self, text: str = "", parent: QWidget | None = None, *, margin: int = 0) -> None:
        super().__init__(text, parent)
        self.setObjectName("muted")
        self.setWordWrap(True)
        self.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.setMargin(margin)


class RichLabel(QLabel):
    """A label for HTML that this program writes. Whatever comes from elsewhere is escaped before it gets here."""

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(text, parent)
        self.setTextFormat(Qt.TextFormat.RichText)


def plain_tip(text: str) -> str:
    """``text`` for a tooltip that shows it letter by letter, its lines as they are."""
    if "<" not in text:  # without a tag no text is taken for HTML
        return text
    return f'<p style="white-space: pre-wrap">{html.escape(text)}</p>'


def wrapped_tip(text: str) -> str:
    """``text`` for a tooltip that shows it letter by letter, in lines of a readable length."""
    return f"<p>{html.escape(text)}</p>" if text else ""


def rich_tip(text: str) -> str:
    """HTML that this program writes, for a tooltip. Whatever comes from elsewhere in it is escaped already."""
    return text
