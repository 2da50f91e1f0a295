"""The strip that says which changes wait for a new run."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QPushButton, QVBoxLayout, QWidget

from app.panels.controls.scale import shown
from app.theme.labels import Label
from grpo_core.text import tr


class WaitingStrip(QFrame):
    """Structural changes, with a button that starts the run they need and one that takes them back.

    Signals:
        start: start the new run.
        forget: keep this run as it is.
    """

    start = Signal()
    forget = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("strip")
        self.text = Label()
        self.text.setWordWrap(True)
        self.begin = QPushButton(tr("New run"))
        self.begin.setProperty("primary", True)
        self.begin.clicked.connect(self.start)
        self.keep = QPushButton(tr("Keep this run"))
        self.keep.clicked.connect(self.forget)
        column = QVBoxLayout(self)
        column.setContentsMargins(8, 8, 8, 8)
        for widget in (self.text, self.begin, self.keep):
            column.addWidget(widget)
        self.hide()

    def show_changes(self, pending: dict[str, Any]) -> None:
        """Name the changes, by dotted path; without any the strip goes."""
        names = ", ".join(f"{word(path)} {shown(value)}" for path, value in pending.items())
        self.text.setText(tr("Needs a new run: {names}.").format(names=names) if names else "")
        self.setVisible(bool(names))


def word(path: str) -> str:
    """A setting's name within a sentence."""
    return path.split(".")[-1].replace("_", " ")
