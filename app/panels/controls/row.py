"""The base of every row of the controls: a name, room for an entry, and below it what there is to say of that entry."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.help.hover import explain_on_hover
from app.theme.labels import Label
from grpo_core.config import About
from grpo_core.config.value_names import headed
from grpo_core.text import tr


class Row(QWidget):
    """A setting's name, its value and, below, what was wrong with an entry.

    Attributes:
        paths: dotted paths of the settings that the row changes together.

    Signals:
        edited: paths, value, gesture (None for a single edit).
    """

    edited = Signal(tuple, object, object)

    def __init__(self, paths: tuple[str, ...], about: About, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.paths = paths
        self.about = about
        self.name = Label(f"{about.title} {about.symbol}".strip())
        self.name.setMinimumWidth(1)  # a long name is cut rather than push its value out of sight
        self.error = Label()
        self.error.setObjectName("refusal")
        self.error.setWordWrap(True)
        self.error.hide()
        self.note = Label()
        self.note.setObjectName("muted")
        self.note.setWordWrap(True)
        self.note.hide()
        self.head = QHBoxLayout()
        self.head.setContentsMargins(0, 0, 0, 0)
        self.head.addWidget(self.name, 1)
        self.body = QVBoxLayout(self)
        self.body.setContentsMargins(0, 0, 0, 0)
        self.body.setSpacing(4)
        self.body.addLayout(self.head)
        self.body.addWidget(self.error)
        self.body.addWidget(self.note)
        explain_on_hover(self.name, about.title, f"{about.help} {usual(about)}")

    def label(self, widget: QWidget) -> None:
        """Give the editing widget the setting's name and what the glossary says of it."""
        explain_on_hover(widget, self.about.title, f"{self.about.help} {usual(self.about)}")
        widget.setAccessibleName(self.about.title)
        self.name.setBuddy(widget)

    def show_value(self, value: Any) -> None:
        """Show the setting's value, which is in force."""
        raise NotImplementedError

    def refuse(self, sentence: str) -> None:
        """Say beside the field what was wrong and what is allowed."""
        self.error.setText(sentence)
        self.error.show()

    def remark(self, sentence: str) -> None:
        """Say something below the field. An empty sentence takes it away."""
        self.note.setText(sentence)
        self.note.setVisible(bool(sentence))

    def accept(self) -> None:
        """The last entry was fine."""
        self.error.hide()

    def mark(self, sentence: str) -> None:
        """Say that the update shown ran under another value. An empty sentence says that it did not."""
        title = f"{self.about.title} {self.about.symbol}".strip()
        self.name.setText(f"{title} •" if sentence else title)
        note = f"{sentence} {self.about.help} {usual(self.about)}".strip()
        explain_on_hover(self.name, self.about.title, note)


def usual(about: About) -> str:
    """Usual range and what is allowed, in words."""
    parts = (
        []
        if about.usual is None
        else [tr("Usual: {low:g} to {high:g}.").format(low=about.usual[0], high=about.usual[1])]
    )
    if about.choices:
        parts.append(tr("Choices: {choices}.").format(choices=", ".join(headed(choice) for choice in about.offered)))
    else:
        parts.append(tr("Allowed: {allowed}.").format(allowed=about.allowed))
    return " ".join(parts)
