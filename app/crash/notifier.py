"""Wakes the window when a report has come in while its frame timer rests."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal


class CrashNotifier(QObject):
    """Connect ``reported`` to a slot of the GUI thread, and give its ``emit`` to hooks that run in any thread.

    Signals:
        reported: there is a report to take; arrives in the receiver's own thread.
    """

    reported = Signal()
