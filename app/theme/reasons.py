"""The reason why a widget is disabled, shown in its tooltip and read by screen readers."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from app.theme.labels import plain_tip, rich_tip

WHY, USUAL = "why", "usual words"
"""Properties of a widget: the reason why it is disabled, and its usual tooltip and description."""


def allow(widget: QWidget, why_not: str = "") -> None:
    """Enable ``widget`` or, if ``why_not`` gives a reason, disable it and everything in it.

    The reason replaces the tooltip and the accessible description of the widget and its parts until it is enabled
    again.
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
