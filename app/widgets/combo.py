"""Combo boxes whose entries change with the content shown, and buttons that stay pressed."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSignalBlocker
from PySide6.QtWidgets import QComboBox, QToolButton

from app.theme.labels import plain_tip
from app.widgets.calm import CalmBox


def choice_box(name: str) -> CalmBox:
    """Return a combo box called ``name``, as wide as its widest entry."""
    box = CalmBox()
    box.setAccessibleName(name)
    box.setToolTip(plain_tip(name))
    box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
    return box


def fill(box: QComboBox, texts: Sequence[str], current: int) -> None:
    """Offer ``texts`` with ``current`` selected, without emitting a signal. Do nothing if nothing has changed."""
    with QSignalBlocker(box):
        if [box.itemText(i) for i in range(box.count())] != list(texts):
            box.clear()
            box.addItems(list(texts))
        box.setCurrentIndex(current)


def toggle(text: str, tip: str, *, quiet: bool = False) -> QToolButton:
    """Return a toggle button, without a frame if it is ``quiet``."""
    button = QToolButton()
    button.setText(text)
    button.setToolTip(plain_tip(tip))
    button.setCheckable(True)
    button.setProperty("quiet", quiet)
    return button
