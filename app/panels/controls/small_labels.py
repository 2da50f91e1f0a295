"""The two kinds of label between the controls: section headings and muted notes."""

from __future__ import annotations

from PySide6.QtWidgets import QSizePolicy

from app.theme.labels import Label


def section_heading(text: str) -> Label:
    """Return a label with a section heading."""
    return Label(text, name="section")


def muted(text: str) -> Label:
    """Return a word-wrapped label in the muted colour."""
    label = Label(text, name="muted", wraps=True)
    label.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
    return label
