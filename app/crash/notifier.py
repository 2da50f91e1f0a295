"""A notifier that wakes the window for a crash report while its frame timer is idle."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal


class CrashNotifier(QObject):
    """Emits a signal in the GUI thread for crash reports from any thread.

    Connect ``reported`` to a slot of the GUI thread, and pass its ``emit`` to hooks that run in any thread.

    Signals:
        reported: emitted when there is a new report; delivered in the receiver's thread.
    """

    reported = Signal()
