"""Labels and tooltips that show plain text, unless their HTML is written by this program, or why a widget is disabled.

By default, Qt renders text that looks like HTML as HTML. The vocabulary of a run, its title or a prompt may come
from a malicious file, in which an ``<img>`` would open a local file or contact another host.
"""

from __future__ import annotations

import html

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget


class Label(QLabel):
    """A label that shows its text literally.

    Args:
        name: its style in the style sheet, for example “muted” or “section”.
        wraps: whether it breaks lines.
        selectable: whether its text can be selected and copied with the mouse.
    """

    def __init__(
        self,
        text: str = "",
        parent: QWidget | None = None,
        *,
        name: str = "",
        wraps: bool = False,
        selectable: bool = False,
    ) -> None:
        super().__init__(text, parent)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setObjectName(name)
        self.setWordWrap(wraps)
        if selectable:
            self.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)

    def tell(self, text: str) -> None:
        """Show ``text``, or hide the label if it is empty."""
        self.setText(text)
        self.setVisible(bool(text))


class EmptyLabel(Label):
    """A sentence in the middle of an empty panel that says what it will show.

    Args:
        margin: pixels around it.
    """

    def __init__(self, text: str = "", *, margin: int = 0) -> None:
        super().__init__(text, name="muted", wraps=True)
        self.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.setMargin(margin)


class Paragraph(Label):
    """Wrapped text with a ``margin`` on both sides, as high as it needs."""

    def __init__(self, *, name: str = "", margin: int = 12) -> None:
        super().__init__(name=name, wraps=True)
        self.setContentsMargins(margin, 0, margin, 0)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)


class RichLabel(QLabel):
    """A label for HTML written by this program. Text from other sources must be escaped."""

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(text, parent)
        self.setTextFormat(Qt.TextFormat.RichText)


def plain_tip(text: str) -> str:
    """Return ``text`` for a tooltip that shows it literally, with its line breaks."""
    if "<" not in text:  # text without a tag is never taken for HTML
        return text
    return f'<p style="white-space: pre-wrap">{html.escape(text)}</p>'


def wrapped_tip(text: str) -> str:
    """Return ``text`` for a tooltip that shows it literally, in lines of a readable length."""
    return f"<p>{html.escape(text)}</p>" if text else ""


def rich_tip(text: str) -> str:
    """Return HTML written by this program, for a tooltip. Text from other sources must already be escaped."""
    return text


WHY, USUAL = "why", "usual words"
"""Properties of a widget: the reason why it is disabled, and its usual tooltip and description."""


def allow(widget: QWidget, why_not: str = "") -> None:
    """Enable ``widget`` or, if ``why_not`` gives a reason, disable it and everything in it.

    The reason replaces the tooltip and the accessible description of the widget and its parts until it is enabled
    again.
    """
    widget.setEnabled(not why_not)
    if (widget.property(WHY) or "") == why_not:
        return
    for part in (widget, *widget.findChildren(QWidget)):
        if not part.property(WHY):
            part.setProperty(USUAL, [part.toolTip(), part.accessibleDescription()])
        tip, description = part.property(USUAL)
        part.setProperty(WHY, why_not)
        part.setToolTip(plain_tip(why_not) if why_not else rich_tip(tip))
        part.setAccessibleDescription(why_not or description)
