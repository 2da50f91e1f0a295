"""The base class of every row of the controls: a name, space for an input widget, and notes below it."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.boxes import across, down
from app.help.hover import explain_on_hover
from app.theme.labels import Label
from app.widgets.scale import shown
from grpo_core.config import About
from grpo_core.config.value_names import headed
from grpo_core.errors import SettingsError
from grpo_core.text import listed, tr


class Row(QWidget):
    """A row with a setting's name, its value and, below them, why an input was rejected.

    Attributes:
        paths: dotted paths of the settings that the row changes together.
        usual: the value before anything is chosen.

    Signals:
        edited: paths, value, gesture (None for a single edit).
    """

    edited = Signal(tuple, object, object)

    def __init__(self, paths: tuple[str, ...], about: About, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.paths, self.about = paths, about
        self.usual: Any = None
        self._marked = "", True
        self.name = Label(f"{about.title} {about.symbol}".strip())
        self.name.setMinimumWidth(1)  # a long name is cut off rather than push its value out of view
        self.error = Label(name="refusal", wraps=True)
        self.error.hide()
        self.note = Label(name="muted", wraps=True)
        self.note.hide()
        self.head = across((self.name, 1), margins=0)
        self.body = down(self.head, self.error, self.note, on=self, margins=0, spacing=4)
        explain_on_hover(self.name, about.title, f"{about.help} {usual(about)}")

    def label(self, widget: QWidget) -> None:
        """Label the input widget with the setting's name and its help from the glossary."""
        explain_on_hover(widget, self.about.title, f"{self.about.help} {usual(self.about)}")
        widget.setAccessibleName(self.about.title)
        self.name.setBuddy(widget)

    def show_value(self, value: Any) -> None:
        raise NotImplementedError

    def refuse(self, sentence: str) -> None:
        """Show below the field why the input was rejected and what is allowed."""
        self.error.setText(sentence)
        self.error.show()

    def stay(self, value: Any, error: SettingsError) -> None:
        """Show why the input was rejected, and that the setting stays ``value``."""
        sentence = tr("{title} stays {row}: {allowed}.")
        self.refuse(sentence.format(title=self.about.title, row=shown(value), allowed=error.allowed))
        self.show_value(value)

    def remark(self, sentence: str) -> None:
        """Show a note below the field. An empty string removes it."""
        self.note.setText(sentence)
        self.note.setVisible(bool(sentence))

    def accept(self) -> None:
        """Clear the message about a rejected input."""
        self.error.hide()

    def mark(self, sentence: str) -> None:
        """Mark the name, and show ``sentence``, which says that the update shown used a different value.

        An empty string removes both.
        """
        marked = sentence, self.isEnabled()  # a lock replaces the tooltip
        if marked == self._marked:
            return
        self._marked = marked
        title = f"{self.about.title} {self.about.symbol}".strip()
        self.name.setText(f"{title} •" if sentence else title)
        note = f"{sentence} {self.about.help} {usual(self.about)}".strip()
        explain_on_hover(self.name, self.about.title, note)


def usual(about: About) -> str:
    """Return the usual and the allowed range of a setting as sentences."""
    parts = []
    if about.usual is not None:
        parts.append(tr("Usual: {low:g} to {high:g}.").format(low=about.usual[0], high=about.usual[1]))
    if about.choices:
        parts.append(tr("Choices: {choices}.").format(choices=listed(headed(choice) for choice in about.offered)))
    else:
        parts.append(tr("Allowed: {allowed}.").format(allowed=about.allowed))
    return " ".join(parts)
