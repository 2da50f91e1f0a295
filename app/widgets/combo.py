"""Combo boxes whose entries change with the content shown."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSignalBlocker
from PySide6.QtWidgets import QComboBox

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
