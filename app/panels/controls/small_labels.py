"""The muted notes between the controls."""

from __future__ import annotations

from PySide6.QtWidgets import QSizePolicy

from app.theme.labels import Label


def muted() -> Label:
    """Return an empty, word-wrapped label in the muted colour."""
    label = Label(name="muted", wraps=True)
    label.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
    return label
