"""Wakes the window when a report has come in while its frame timer rests."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal


class Bell(QObject):
    """Connect ``rang`` to a slot of the GUI thread, and give ``rang.emit`` to whoever rings in another thread.

    Signals:
        rang: there is something to take; arrives in the receiver's own thread.
    """

    rang = Signal()
