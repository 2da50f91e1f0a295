"""One completion as text to be read: wrapped, selectable, with what it was paid above it."""

from __future__ import annotations

import json

from PySide6.QtGui import QTextOption
from PySide6.QtWidgets import QPlainTextEdit, QSizePolicy, QVBoxLayout, QWidget

from app.theme.labels import Label, plain_tip
from app.theme.tokens import Theme
from grpo_core.text import tr


class CompletionText(QWidget):
    """A heading, and below it the text; nothing in it is ever taken for anything but text."""

    def __init__(self, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._shown = ""
        self.heading = Label()
        self.heading.setObjectName("muted")
        self.heading.setWordWrap(True)
        self.heading.setSizePolicy(
            QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred
        )  # no text moves the splitter
        self.text = QPlainTextEdit()
        self.text.setReadOnly(True)
        self.text.setTabChangesFocus(True)
        self.text.setMinimumHeight(1)  # in a low panel the heading is whole
        self.text.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.text.setAccessibleName(title)
        column = QVBoxLayout(self)
        column.setContentsMargins(8, 0, 8, 8)
        column.setSpacing(4)
        column.addWidget(self.heading)
        column.addWidget(self.text, 1)

    def show_text(self, theme: Theme, scale: float, heading: str, prompt: str | None, completion: str | None) -> None:
        """Show a completion under its prompt; a text that is not recorded is said to be so."""
        self.text.setFont(theme.font("body", scale))
        self.heading.setText(heading)
        self.heading.setToolTip(plain_tip(heading))
        parts = [tr("Prompt"), readable(prompt), tr("Completion"), readable(completion)]
        before = "\n".join(parts[:2]) + "\n\n"
        whole = before + "\n".join(parts[2:])
        if whole != self._shown:
            self._shown = whole
            self.text.setPlainText(whole)
            self._begin_at(len(before))

    def _begin_at(self, place: int) -> None:
        """Where not all of the text has room, put the completion in sight: prompts may be long, and equal."""
        for position in (len(self.text.toPlainText()), place):
            cursor = self.text.textCursor()
            cursor.setPosition(min(position, self.text.document().characterCount() - 1))
            self.text.setTextCursor(cursor)


def readable(text: str | None) -> str:
    """A text as it is; of a conversation in JSON the speakers and what they say."""
    if text is None:
        return tr("(not recorded as text)")
    if not text.lstrip().startswith("[{"):
        return text
    try:
        messages = json.loads(text)
        return "\n".join(f"{message['role']}: {message['content']}" for message in messages)
    except (ValueError, RecursionError, LookupError, TypeError):
        return text
