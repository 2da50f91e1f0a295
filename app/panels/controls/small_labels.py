"""The two kinds of text between the controls: headings of sections, and muted notes."""

from __future__ import annotations

from PySide6.QtWidgets import QSizePolicy

from app.theme.labels import Label


def section_heading(text: str) -> Label:
    """Return the heading of a section."""
    label = Label(text)
    label.setObjectName("section")
    return label


def muted(text: str) -> Label:
    """Return a note in muted ink, word-wrapped."""
    label = Label(text)
    label.setObjectName("muted")
    label.setWordWrap(True)
    label.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
    return label
