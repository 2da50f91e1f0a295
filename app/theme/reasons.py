"""Reasons why something cannot be pressed now: on hover, and for a screen reader."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from app.theme.labels import plain_tip, rich_tip

WHY, USUAL = "why", "usual words"
"""Properties of a widget: why it is disabled, and its tooltip and description when it is not."""


def allow(widget: QWidget, why_not: str = "") -> None:
    """Enable ``widget``, or, with a sentence that says why not, disable it with all that is in it.

    The sentence takes the place of its tooltip and of what screen readers read out, and of those of its parts, until it
    is enabled again.
    """
    widget.setEnabled(not why_not)
    if (widget.property(WHY) or "") == why_not:
        return
    for part in (widget, *widget.findChildren(QWidget)):
        if not part.property(WHY):
            part.setProperty(USUAL, [part.toolTip(), part.accessibleDescription()])
        tip, description = part.property(USUAL)
        part.setProperty(WHY, why_not)
        part.setToolTip(plain_tip(why_not) if why_not else rich_tip(tip))
        part.setAccessibleDescription(why_not or description)
