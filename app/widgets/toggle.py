"""Buttons that stay pressed until they are clicked again."""

from __future__ import annotations

from PySide6.QtWidgets import QToolButton

from app.theme.labels import plain_tip


def toggle(text: str, tip: str, *, quiet: bool = False) -> QToolButton:
    """Return a toggle button, without a frame if it is ``quiet``."""
    button = QToolButton()
    button.setText(text)
    button.setToolTip(plain_tip(tip))
    button.setCheckable(True)
    button.setProperty("quiet", quiet)
    return button
